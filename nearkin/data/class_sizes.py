"""How many images each class of CUB-200-2011 and Cars196 has, so that a short copy can be told what it lacks."""

from __future__ import annotations

_CUB200 = (
    "Black_footed_Albatross:60 Laysan_Albatross:60 Sooty_Albatross:58 Groove_billed_Ani:60 Crested_Auklet:44 "
    "Least_Auklet:41 Parakeet_Auklet:53 Rhinoceros_Auklet:48 Brewer_Blackbird:59 Red_winged_Blackbird:60 "
    "Rusty_Blackbird:60 Yellow_headed_Blackbird:56 Bobolink:60 Indigo_Bunting:60 Lazuli_Bunting:58 Painted_Bunting:58 "
    "Cardinal:57 Spotted_Catbird:45 Gray_Catbird:59 Yellow_breasted_Chat:59 Eastern_Towhee:60 Chuck_will_Widow:56 "
    "Brandt_Cormorant:59 Red_faced_Cormorant:52 Pelagic_Cormorant:60 Bronzed_Cowbird:60 Shiny_Cowbird:60 "
    "Brown_Creeper:59 American_Crow:60 Fish_Crow:60 Black_billed_Cuckoo:60 Mangrove_Cuckoo:53 Yellow_billed_Cuckoo:59 "
    "Gray_crowned_Rosy_Finch:59 Purple_Finch:60 Northern_Flicker:60 Acadian_Flycatcher:59 Great_Crested_Flycatcher:60 "
    "Least_Flycatcher:59 Olive_sided_Flycatcher:60 Scissor_tailed_Flycatcher:60 Vermilion_Flycatcher:60 "
    "Yellow_bellied_Flycatcher:59 Frigatebird:60 Northern_Fulmar:60 Gadwall:60 American_Goldfinch:60 "
    "European_Goldfinch:60 Boat_tailed_Grackle:60 Eared_Grebe:60 Horned_Grebe:60 Pied_billed_Grebe:60 "
    "Western_Grebe:60 Blue_Grosbeak:60 Evening_Grosbeak:60 Pine_Grosbeak:60 Rose_breasted_Grosbeak:60 "
    "Pigeon_Guillemot:58 California_Gull:60 Glaucous_winged_Gull:59 Heermann_Gull:60 Herring_Gull:60 Ivory_Gull:60 "
    "Ring_billed_Gull:60 Slaty_backed_Gull:50 Western_Gull:60 Anna_Hummingbird:60 Ruby_throated_Hummingbird:60 "
    "Rufous_Hummingbird:60 Green_Violetear:60 Long_tailed_Jaeger:60 Pomarine_Jaeger:60 Blue_Jay:60 Florida_Jay:60 "
    "Green_Jay:57 Dark_eyed_Junco:60 Tropical_Kingbird:60 Gray_Kingbird:59 Belted_Kingfisher:60 Green_Kingfisher:60 "
    "Pied_Kingfisher:60 Ringed_Kingfisher:60 White_breasted_Kingfisher:60 Red_legged_Kittiwake:53 Horned_Lark:60 "
    "Pacific_Loon:60 Mallard:60 Western_Meadowlark:60 Hooded_Merganser:60 Red_breasted_Merganser:60 Mockingbird:60 "
    "Nighthawk:60 Clark_Nutcracker:60 White_breasted_Nuthatch:60 Baltimore_Oriole:60 Hooded_Oriole:60 "
    "Orchard_Oriole:59 Scott_Oriole:60 Ovenbird:60 Brown_Pelican:60 White_Pelican:50 Western_Wood_Pewee:60 "
    "Sayornis:60 American_Pipit:60 Whip_poor_Will:49 Horned_Puffin:60 Common_Raven:59 White_necked_Raven:60 "
    "American_Redstart:60 Geococcyx:60 Loggerhead_Shrike:60 Great_Grey_Shrike:60 Baird_Sparrow:50 "
    "Black_throated_Sparrow:60 Brewer_Sparrow:59 Chipping_Sparrow:60 Clay_colored_Sparrow:59 House_Sparrow:60 "
    "Field_Sparrow:59 Fox_Sparrow:60 Grasshopper_Sparrow:60 Harris_Sparrow:60 Henslow_Sparrow:60 Le_Conte_Sparrow:59 "
    "Lincoln_Sparrow:59 Nelson_Sharp_tailed_Sparrow:59 Savannah_Sparrow:60 Seaside_Sparrow:60 Song_Sparrow:60 "
    "Tree_Sparrow:60 Vesper_Sparrow:60 White_crowned_Sparrow:60 White_throated_Sparrow:60 Cape_Glossy_Starling:60 "
    "Bank_Swallow:59 Barn_Swallow:60 Cliff_Swallow:60 Tree_Swallow:60 Scarlet_Tanager:60 Summer_Tanager:60 "
    "Artic_Tern:58 Black_Tern:60 Caspian_Tern:60 Common_Tern:60 Elegant_Tern:60 Forsters_Tern:60 Least_Tern:60 "
    "Green_tailed_Towhee:60 Brown_Thrasher:59 Sage_Thrasher:60 Black_capped_Vireo:51 Blue_headed_Vireo:60 "
    "Philadelphia_Vireo:59 Red_eyed_Vireo:60 Warbling_Vireo:60 White_eyed_Vireo:60 Yellow_throated_Vireo:59 "
    "Bay_breasted_Warbler:60 Black_and_white_Warbler:60 Black_throated_Blue_Warbler:59 Blue_winged_Warbler:60 "
    "Canada_Warbler:60 Cape_May_Warbler:60 Cerulean_Warbler:60 Chestnut_sided_Warbler:60 Golden_winged_Warbler:59 "
    "Hooded_Warbler:60 Kentucky_Warbler:59 Magnolia_Warbler:59 Mourning_Warbler:60 Myrtle_Warbler:60 "
    "Nashville_Warbler:60 Orange_crowned_Warbler:60 Palm_Warbler:60 Pine_Warbler:60 Prairie_Warbler:60 "
    "Prothonotary_Warbler:60 Swainson_Warbler:56 Tennessee_Warbler:59 Wilson_Warbler:60 Worm_eating_Warbler:59 "
    "Yellow_Warbler:60 Northern_Waterthrush:60 Louisiana_Waterthrush:60 Bohemian_Waxwing:60 Cedar_Waxwing:60 "
    "American_Three_toed_Woodpecker:50 Pileated_Woodpecker:60 Red_bellied_Woodpecker:60 Red_cockaded_Woodpecker:58 "
    "Red_headed_Woodpecker:60 Downy_Woodpecker:60 Bewick_Wren:60 Cactus_Wren:60 Carolina_Wren:60 House_Wren:59 "
    "Marsh_Wren:60 Rock_Wren:60 Winter_Wren:60 Common_Yellowthroat:60 "
)

CUB200: dict[str, int] = {
    f"{number:03d}.{item.partition(':')[0]}": int(item.partition(":")[2])
    for number, item in enumerate(_CUB200.split(), start=1)
}
"""Images by official class name, ``001.Black_footed_Albatross`` to ``200.Common_Yellowthroat``."""

# fmt: off
CARS196: tuple[int, ...] = (
    89, 64, 86, 84, 81, 89, 78, 90, 82, 66, 76, 73, 82, 85, 86, 87, 81, 85, 81, 92, 84, 85, 79, 90, 79, 68, 71, 82,
    85, 83, 88, 83, 84, 89, 82, 82, 77, 81, 73, 78, 71, 69, 92, 89, 65, 87, 70, 85, 75, 84, 86, 82, 89, 80, 79, 93,
    75, 88, 89, 73, 86, 74, 88, 59, 90, 83, 77, 80, 76, 85, 70, 90, 89, 87, 88, 87, 81, 75, 97, 86, 90, 90, 81, 84,
    87, 85, 88, 79, 88, 82, 77, 80, 78, 87, 91, 82, 84, 92, 55, 67, 84, 78, 79, 85, 87, 83, 89, 88, 89, 86, 84, 91,
    85, 90, 90, 75, 85, 83, 136, 85, 89, 80, 89, 78, 87, 84, 82, 78, 77, 82, 84, 87, 84, 67, 84, 48, 87, 79, 85, 84,
    68, 65, 80, 93, 88, 86, 89, 90, 85, 72, 87, 71, 89, 85, 85, 78, 73, 58, 72, 88, 96, 91, 73, 87, 89, 82, 95, 84,
    77, 88, 92, 88, 87, 82, 61, 77, 88, 83, 90, 85, 76, 92, 84, 81, 77, 77, 87, 87, 81, 86, 92, 85, 83, 91, 86, 80,
)
# fmt: on
"""Images of classes 1 to 196, training and test images of the original task together."""
