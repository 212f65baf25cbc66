package platform

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
