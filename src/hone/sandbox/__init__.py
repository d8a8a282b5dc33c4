"""What a command may touch, how that is enforced, and which way of enforcing it works here.

choice     tries the ways in order and takes the first that holds: Sandbox
spec       the values: SandboxSpec, Claim, Launch, SandboxMode
modes      a cell as a command line of bubblewrap, or as rules for Landlock
trial      what is tried inside a cell before it is relied on
supervisor the process between Hone and a command; it imports only
           kernel (raw calls), seccomp (the filter), landlock, attributes (what Landlock leaves open), descent
           (root's way down)
"""
