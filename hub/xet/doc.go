// Package xet reads Hugging Face's Xet storage: files kept as content-defined chunks that lie, compressed, in larger
// objects called xorbs.
//
// [Client.Download] asks the content-addressed store (CAS) how a file is put together, fetches the byte ranges of the
// xorbs that hold it, decodes their chunks and hands each one to a [Sink] with its place in the file and its hash.
// [Sum] computes the Xet hash of any reader, which is the name of that content in the store:
//
//	hash, size, err := xet.Sum(strings.NewReader("hello world"))
//	// hash.String() == "f15edd43b7e85cfd25e2758ffe13b99fdd09dfa817e8d9f6548722a7a126db7f", size == 11
//
// Formats: the published specification at huggingface.co/docs/xet and the reference implementation, xet-core.
package xet
