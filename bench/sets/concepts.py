"""What the paraphrase set is made of: per concept a fact, a question in other words, and what only looks alike.

Each row is (fact, question, near). The question shares no word with the fact that search asks for, and at least one
with `near`, which is about something else.
"""

from __future__ import annotations

CONCEPTS: tuple[tuple[str, str, str], ...] = (
    (
        "The physician told him to stay in bed",
        "advice from the doctor",
        "Doctor Who starts again on Saturday, on the advice of viewers",
    ),
    (
        "She purchased an automobile last spring",
        "buying a car",
        "The dining car of the train was closed, so buying food was hard",
    ),
    (
        "Their infant was up all night",
        "a baby that cannot sleep",
        "Baby carrots sleep under the soil until spring",
    ),
    ("He is allergic to peanuts", "foods that make him ill", "The ill-fated foods stall lost its licence"),
    ("The film bored the whole audience", "a dull movie", "The movie theatre has a dull red carpet"),
    (
        "Her spouse repairs watches",
        "what the husband does for a living",
        "Good husband material, joked the living room designer",
    ),
    (
        "The firm dismissed forty workers",
        "employees who lost their jobs",
        "Steve Jobs lost a chess game to employees",
    ),
    (
        "We moved to a bigger flat in June",
        "renting a new apartment",
        "Renting a projector is cheap, the apartment block board said",
    ),
    (
        "The kettle will not switch on any more",
        "broken kitchen appliances",
        "Kitchen chairs in broken white are sold out",
    ),
    ("She is expecting twins", "a pregnant woman", "The pregnant pause of the woman on stage drew laughter"),
    (
        "He quit smoking two years ago",
        "giving up cigarettes",
        "Giving talks about cigarettes as art is a hobby of the curator",
    ),
    (
        "The lecture begins at noon",
        "when does the talk start",
        "Small talk at the start of a race calms runners",
    ),
    (
        "My grandmother knitted this sweater",
        "handmade woollen clothing",
        "Clothing shops with handmade signs sell woollen nothing",
    ),
    (
        "They wed on a beach in Portugal",
        "the marriage ceremony by the sea",
        "The sea chart of the opening ceremony was a marriage of styles",
    ),
    (
        "The bank turned down our loan request",
        "money that could not be borrowed",
        "Borrowed books about money are due on Monday",
    ),
    ("Her plane was three hours late", "delayed flights", "Flights of stairs delayed the wheelchair"),
    (
        "He cannot see well without his glasses",
        "poor eyesight",
        "Poor soil, good eyesight: a farmer's memoir",
    ),
    (
        "The soup was far too salty",
        "complaints about the meal",
        "Complaints about the meal plan software fill the forum",
    ),
    (
        "The puppy chewed up my shoes",
        "damage done by a young dog",
        "Hot dog stands did damage to the young lawn",
    ),
    (
        "Rain ruined the picnic",
        "bad weather spoilt an outing",
        "The weather vane is a bad copy of the one on the outing poster",
    ),
    (
        "She earns twice as much as her brother",
        "salary compared within the family",
        "The family tree compared salary systems of monks",
    ),
    ("He studied law in Leiden", "education of the attorney", "The attorney general spoke on education"),
    (
        "The river burst its banks in March",
        "flooding in the valley",
        "Flooding the market is a habit of Silicon Valley",
    ),
    ("Our cat is missing since Tuesday", "a lost pet", "Pet names lost on the children"),
    (
        "She is afraid of spiders",
        "phobia of insects",
        "Phobia is the title of a film with insects on its poster",
    ),
    (
        "The vase fell and broke into pieces",
        "shattered pottery",
        "Pottery class shattered the attendance record",
    ),
    (
        "He swims forty lengths each morning",
        "daily exercise routine",
        "Routine checks of the exercise books are daily work",
    ),
    (
        "The thieves took her necklace",
        "stolen jewellery",
        "Jewellery boxes with a stolen look are in fashion",
    ),
    ("The lift is out of order", "the elevator does not work", "Elevator music is hard work"),
    (
        "My phone dies after an hour",
        "a battery that drains quickly",
        "Battery Park drains quickly after a storm",
    ),
    (
        "He plays violin in a quartet",
        "which musician belongs to a string ensemble",
        "The string of an ensemble of kites cut a musician",
    ),
    ("The novel sold a million copies", "a bestselling book", "Book a bestselling tour at the desk"),
    (
        "She speaks Dutch and Danish fluently",
        "foreign languages mastered",
        "Foreign coins and mastered recordings: languages of trade",
    ),
    (
        "The meeting was put off until autumn",
        "the postponed conference",
        "The pear, also called conference, was postponed in the recipe",
    ),
    (
        "He broke his wrist while skating",
        "a bone injured on ice",
        "The injured party left the ice cream on the bone",
    ),
    (
        "Their house burned to the ground",
        "a home destroyed by fire",
        "The home page about fire ants was destroyed",
    ),
    (
        "She gave all her savings to the orphanage",
        "charity donations",
        "Charity shops turn away donations of lamps",
    ),
    (
        "The teacher praised her essay",
        "positive feedback on homework",
        "Feedback of the guitar was positive, the homework rap says",
    ),
    (
        "He drives a lorry across Europe",
        "occupation of the truck operator",
        "The truck stop survived the occupation, says its operator",
    ),
    ("Our landlord raised the monthly charge", "the rent went up", "Rent a boat and go up the river"),
    ("The child has a high temperature", "a kid with a fever", "Cabin fever seized the kid glove maker"),
    (
        "She dyed her hair green",
        "changed the colour of a hairstyle",
        "The colour sergeant changed trains; his hairstyle did not",
    ),
    (
        "He forgot the anniversary again",
        "failing to remember an important date",
        "Remember that the date palm is important and failing",
    ),
    (
        "The orchard yields sweet cherries",
        "fruit harvested from trees",
        "Family trees of fruit flies were harvested from archives",
    ),
    (
        "The parcel never reached us",
        "a package that was not delivered",
        "The package holiday delivered sunburn",
    ),
    (
        "She won the race by a second",
        "victory in a running contest",
        "Running water is a victory; the contest is the well",
    ),
    ("The shop shuts at seven", "store closing hours", "Store the closing argument for hours"),
    (
        "He sold the family business",
        "a company that changed owner",
        "Company is what the dog owner changed jobs for",
    ),
    ("The carpet smells of damp", "moist odour of a rug", "Rug sellers know the odour of moist tea"),
    (
        "They adopted a girl from Peru",
        "parents who took in a daughter",
        "Daughter cells took their parents apart",
    ),
    (
        "The engine makes a grinding noise",
        "strange sound of the motor",
        "Motor sport fans find a strange sound bite",
    ),
    ("She is a vegetarian", "someone who eats no meat", "The meat of the argument eats someone up"),
    (
        "He owes his cousin five hundred euros",
        "a debt to a relative",
        "Relative dating put the monastery in debt",
    ),
    (
        "The summit was hidden in mist",
        "fog around the mountain top",
        "Fog lamps of the mountain bike are top of the list",
    ),
    (
        "She retires at the end of December",
        "leaving work because of age",
        "Leaving the stone age: a work of fiction",
    ),
    ("The bakery ran out of rye loaves", "no bread left", "Left turn at the bread museum"),
    (
        "He grew up on an island",
        "childhood surrounded by water",
        "Childhood toys were surrounded by water colours",
    ),
    ("The court found him not guilty", "acquitted of the crime", "Crime novels acquitted themselves well"),
    (
        "The lights went off all over town",
        "an electricity failure in the city",
        "Failure of the electricity tax bill pleased the city",
    ),
    (
        "She taught herself to code",
        "learning programming without a school",
        "School television programming is learning to be brief",
    ),
    (
        "The wedding ring was too tight",
        "jewel that did not fit the finger",
        "Finger food fit for a jewel thief",
    ),
    ("He hates getting up early", "dislike of mornings", "Mornings in the Dislike Café are quiet"),
    (
        "The hikers got lost in the forest",
        "walkers astray in the woods",
        "Tiger Woods led walkers astray with a joke",
    ),
    ("Her coat has a torn sleeve", "ripped jacket", "Jacket potatoes and ripped muscles"),
    (
        "The pianist made his debut in Oslo",
        "first public concert",
        "Public transport to the first concert hall is free",
    ),
    (
        "The well has dried up",
        "a shortage of drinking liquid",
        "A shortage of liquid assets keeps banks from drinking champagne",
    ),
    ("She mends broken bicycles", "fixing bikes", "Fixing dates for the film about bikes"),
    ("The boss yelled at everyone", "an angry manager", "Angry birds on the manager's screen"),
    (
        "He got a puncture on the motorway",
        "a flat tyre on the highway",
        "Flat hats and a tyre swing by the highway",
    ),
    (
        "The newborn weighs four kilos",
        "weight of the child at birth",
        "Birth of a nation, weight of a child star",
    ),
    (
        "They dine at a Thai place on Fridays",
        "weekly visit to a restaurant",
        "Visit the restaurant car museum with a weekly pass",
    ),
    (
        "The statue was removed from the square",
        "a monument taken away",
        "Monument Valley was taken off the list of places to get away",
    ),
)

# What decides here is one word that nothing else has; facts of the same meaning stand beside it.
NAMED: tuple[tuple[str, str], ...] = (
    ("The invoice {name} was paid", "The bill {name} has been settled"),
    ("Project {name} starts in May", "The undertaking called {name} begins in May"),
    ("The router in room {name} fails", "The network device in {name} breaks down"),
    ("Train {name} was late", "The {name} railway service had a delay"),
    ("Patient {name} has a fever", "The sick person {name} runs a temperature"),
    ("The vessel {name} left the port", "The ship {name} sailed from the harbour"),
)
