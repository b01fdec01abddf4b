"""English function words that a query may leave out. They stay in the index.

Written as they appear in a text, in lower case and before stemming; contractions with n't lose their
apostrophe, other contractions are analysed as their first word. "May" and "us" are missing on purpose: in
lower case they cannot be told from the month and the country.
"""

STOP_WORDS: frozenset[str] = frozenset(
    """
    a an the this that these those
    i me my mine myself we our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    who whom whose what which when where why how
    am is are was were be been being do does did doing done have has had having
    can could will would shall should might must ought
    cannot cant couldnt wont wouldnt shant shouldnt mightnt mustnt neednt
    isnt arent wasnt werent aint dont doesnt didnt hasnt havent hadnt
    and or but nor if then else than because as so though although unless until while whether
    of at by for with without about against between into through during before after above below
    to from up down in out on off over under upon onto toward towards within via per
    again further once here there now just only also too very such both each few more most some any all
    other another same own no not every either neither
    let lets ever yet still
    """.split()  # noqa: SIM905 - two hundred quotes hide the words
)
