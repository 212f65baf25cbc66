// Package platform finds PJRT plugins on this machine, opens devices by name, and says why one can't be used.
//
//	f := platform.Default()
//	client, ordinal, err := f.Open(ctx, "xla-cpu:1")
//
// Names are xla-cpu, tpu, cuda, and whatever GESSO_PLUGIN_<NAME>=path adds (xla-cpu is GESSO_PLUGIN_XLA_CPU, and wins over
// what would be found). A plugin is looked for in the environment, in Gesso's cache folder (plugins/<name>/*.so), in the
// site-packages of Python installations, and where the system keeps it.
//
// [Finder.Add] puts a plugin out of a Python wheel into the cache folder, and a client that Open starts keeps its compiled
// programs there too. GESSO_CACHE names another folder, GESSO_CACHE_LIMIT how many bytes of programs it may hold.
//
// # Safety
//
// A plugin can crash the process that loads it. One that has not been seen before is therefore tried in a child process:
// the same program, started again, if it calls [Main] at its start. What was learnt, when it was added or first used, is
// kept in the cache folder, by path, size and date. Without hardware nothing is loaded that would go looking for it on the
// network: TPUs and NVIDIA GPUs are looked for on the bus first.
package platform
