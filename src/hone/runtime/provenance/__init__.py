"""Provenance on disk: text from elsewhere stays foreign when it is saved in a trusted folder.

`observer` learns what tools and commands write and records what is tainted; `labels` tells for each file and
output whether it contains such text; `commits` finds what the owner has committed since.

tainted:   written while the conversation was foreign, or by a command with network
window:    the time in which a command ran; Hone, not the owner, changed what changed in it
view:      the tainted texts below one trusted folder, ready for comparison
explained: said of a tainted line that also stands in an older file: code repeats itself
withheld:  foreign only because the owner has not trusted the folder; `relabeling` makes it local afterwards
area:      a folder whose files are all foreign: tainted dependencies, or an untrusted folder
"""
