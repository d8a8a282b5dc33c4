"""Run commands in a sandbox: what a command may touch, how that is enforced, and which mode works here.

choice     tries the modes in order and uses the first that holds: Sandbox
spec       the values: SandboxSpec, Claim, Launch, SandboxMode
modes      turns a SandboxSpec into a bubblewrap command line or into Landlock rules
trial      tests a sandbox from the inside before it is used
supervisor the process between Hone and a command; it imports only
           kernel (raw system calls), seccomp (the filter), landlock, attributes (changes of mode and times,
           which Landlock does not restrict), descent (gives up root)
"""
