"""Another profile, k1 or b for a memory, from the command line."""

from unit.cli.command_line import remember, texts


def test_a_memory_finds_by_the_profile_that_the_command_gave_it(run):
    remember(run, "die Häuser am See")
    assert texts(run("recall", "Haus", "--json")) == []
    done = run("reindex", "--profile", "snowball:german")
    assert (done.code, done.out) == (0, "The memory was reindexed: profile snowball:german, k1 0.9, b 0.4.\n")
    assert texts(run("recall", "Haus", "--json")) == ["die Häuser am See"]


def test_a_configuration_of_the_profile_that_is_to_come_is_in_nobodys_way(run, tmp_path):
    remember(run, "die Häuser am See")
    config = tmp_path / "config.json"
    config.write_text('{"profile": "snowball:german"}')
    refused = run("recall", "Haus", "--config", str(config), "--json")
    assert refused.code == 2
    assert "reindex" in refused.error["message"]
    assert run("reindex", "--profile", "snowball:german", "--config", str(config)).code == 0
    assert texts(run("recall", "Haus", "--config", str(config), "--json")) == ["die Häuser am See"]


def test_the_reply_for_programs_tells_the_settings_and_whether_they_changed(run):
    remember(run, "a fact")
    told = {"profile": "english.v1", "k1": 1.2, "b": 0.0, "changed": True, "pending": False, "embedded": 0}
    assert run("reindex", "--k1", "1.2", "--b", "0", "--json").json == told
    assert run("reindex", "--b", "0", "--json").json == {**told, "changed": False}
    assert run("reindex", "--b", "0").out == "Nothing was rewritten: profile english.v1, k1 1.2, b 0.\n"


def test_only_the_memory_that_is_named_changes(run):
    remember(run, "die Häuser", "--principal", "ann")
    remember(run, "die Häuser", "--principal", "bob")
    assert run("reindex", "--principal", "ann", "--profile", "snowball:german").code == 0
    assert texts(run("recall", "Haus", "--principal", "ann", "--json")) == ["die Häuser"]
    assert texts(run("recall", "Haus", "--principal", "bob", "--json")) == []


def test_what_is_wrong_or_not_there_is_refused_and_makes_no_store(run, store_path):
    absent = run("reindex", "--profile", "unicode.v1", "--json")
    assert (absent.code, absent.error["code"]) == (1, "failed")
    assert not store_path.exists()
    remember(run, "a fact")
    assert run("reindex").code == 2
    assert run("reindex", "--profile", "klingon", "--json").error["field"] == "profile"
    assert run("reindex", "--b", "2", "--json").error["field"] == "b"
    unknown = run("reindex", "--principal", "nobody", "--profile", "unicode.v1", "--json")
    assert (unknown.code, unknown.error["code"]) == (1, "failed")


def test_the_command_is_in_the_help(run):
    assert "reindex" in run("--help").out
