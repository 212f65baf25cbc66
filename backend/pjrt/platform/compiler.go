package platform

import (
	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/mosaic"
)

// adaptTPU makes programs for a chip the same text that package plan compiles ahead of time, so that they are found in the
// cache. GESSO_TPU_KERNELS=0 leaves Gesso's own kernels out.
func (f *Finder) adaptTPU(o *pjrt.Options, kind string) {
	c, ok := mosaic.ChipOf(kind)
	if !ok {
		return
	}
	o.Text, o.Flags = mosaic.Options(c, f.getenv("GESSO_TPU_KERNELS") != "0"), mosaic.Flags()
}

// Compiler returns a platform's plugin for compiling without its devices, and what has to be in the environment of the
// process that loads it. Where the hardware is present the environment is the user's.
func (f *Finder) Compiler(name string) (path string, env []string, err error) {
	if path, err = f.Find(name); err != nil {
		return "", nil, err
	}
	if f.hardware(name) != nil {
		env = withoutHardware(name)
	}
	return path, env, nil
}
