"""Run commands in a sandbox: what a command may touch, how that is enforced, and which mode works here.

workspace  a folder with its commands: builds on all the others
choice     tries the modes in order and uses the first that holds: Sandbox
examining  names the modes of this machine, and runs a trial of one
spec       the values: SandboxSpec, Claim, Launch, SandboxMode
mounts     arranges what is written, read, sealed and hidden
modes      turns a SandboxSpec into a bubblewrap command line or into Landlock rules
trial      tests a sandbox from the inside before it is used
host_view  what commands see of the user's machine: toolchains, identity (of git), environment; caches
protection keeps sensitive places as they were: census finds them, guard takes changes back, directives and
           gitfiles know what git runs
report     what of this `hone doctor` says
supervisor the process between Hone and a command; it imports only
           kernel (raw system calls), seccomp (the filter), landlock, carving (mounts beside it), attributes
           (changes of mode and times, which Landlock does not restrict), descent (gives up root)
"""
