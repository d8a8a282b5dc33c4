"""What a command may touch, how that is enforced, and which way of enforcing it works here.

choice     tries the ways in order and takes the first that holds: Sandbox
cell       the values: Cell, Claim, Launch, Mode
bubble     a cell as a command line of bubblewrap
fence      a cell as rules for Landlock
trial      what is tried inside a cell before it is relied on
warden     the process between Hone and a command; it imports only
           kernel (raw calls), seccomp (the filter), landlock, clerk (what Landlock leaves open), descent
           (root's way down)
"""
