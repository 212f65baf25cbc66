package hub

import "github.com/gesso-go/gesso/hub/xet"

// A tiler puts the chunks of a file in order, as far as they are there without a gap, and hashes them to the file's Xet
// hash. Chunks may come in any order.
type tiler struct {
	tree    xet.Tree
	next    int64 // all chunks before this byte are in the tree
	waiting map[int64]record
}

func (t *tiler) add(r record) {
	if r.off < t.next {
		return // again
	}
	if r.off > t.next {
		if t.waiting == nil {
			t.waiting = map[int64]record{}
		}
		t.waiting[r.off] = r
		return
	}
	for {
		t.tree.Add(xet.Leaf{Hash: r.hash, Size: uint64(r.size)})
		t.next += r.size
		var ok bool
		if r, ok = t.waiting[t.next]; !ok {
			return
		}
		delete(t.waiting, t.next)
	}
}

// hash returns the Xet hash of a file of that size, if its chunks are all there.
func (t *tiler) hash(size int64) (xet.Hash, bool) {
	if t.next != size {
		return xet.Hash{}, false
	}
	return t.tree.FileHash(), true
}
