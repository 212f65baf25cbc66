// Package hub brings models from the Hugging Face Hub to this machine, into the cache that huggingface_hub uses too: what
// Python downloaded is found here, and the other way round.
//
// [Pull] turns a reference into a folder:
//
//	cfg, err := hub.ConfigFromEnv(os.Getenv) // HF_HOME, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE …
//	if err != nil {
//		return err
//	}
//	r, err := hub.Pull(ctx, cfg, "black-forest-labs/FLUX.1-schnell", hub.Options{})
//	if err != nil {
//		return err // one line: what failed and what to do; errors.Is tells ErrGated, ErrNotFound, ErrOffline …
//	}
//	// r.Dir holds the files that a pipeline needs
//
// Files come from the Xet store or by plain HTTP, several at a time, and are verified against the hashes that the Hub
// announces before they get their name. A download that was cut off, or killed, goes on where it was. [List], [Remove]
// and [Describe] look after the cache.
package hub
