// Package weights reads checkpoints: safetensors files, and the component folders of a Diffusers pipeline made of them,
// as one namespace of named tensors whose bytes stay in the mapped file until they are used.
//
// The main types are [File], one safetensors file; [Checkpoint], one component folder with its shards; and [Tensor], a
// name, a type, a shape and a place in a mapped file:
//
//	c, err := weights.Open("flux/transformer", weights.Options{Variant: "bf16"})
//	if err != nil {
//		return err // one line: which file, which key, what was expected
//	}
//	defer c.Close()
//	t, err := c.Tensor("x_embedder.weight") // nothing is read yet
//	part, err := t.Slice(0, 0, 1536)        // the rows of rank 0 of 2
//	err = part.CopyTo(buffer)               // reads these rows and nothing else
//	part.Release()                          // gives their pages back
//
// Opening reads the headers only. [Tensor.Bytes] is a view of the mapping, so a checkpoint larger than memory can be
// opened, and several processes that map one file share its pages. [Tensor.Slice] and [Tensor.Gather] restrict a
// tensor to the part that one rank of a tensor-parallel group owns.
//
// Files come from outside and are validated as strictly as the reference implementation does; a mistake is one line
// that names the file, the key and what was expected, and never a panic or an allocation out of proportion to the file.
// Only safetensors is read: a pickled PyTorch file can run code and is refused by name.
//
// Everything here may be used by several goroutines at once, except Close, which ends the life of all views.
package weights
