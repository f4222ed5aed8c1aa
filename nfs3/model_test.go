package nfs3_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// TestModel has random writes, reads and sizes of a file, and compares it with a model: after each
// step what is read is what the model has.
func TestModel(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		f := u.Create(u.Root, "f", 0o644)
		var model []byte
		const most = 300_000
		place := func() int { // often at the edges of pages
			at := r.IntN(most)
			if r.IntN(2) == 0 {
				at = at&^0xffff + r.IntN(5) - 2
			}
			return max(at, 0)
		}
		grow := func(n int) {
			if n > len(model) {
				model = append(model, make([]byte, n-len(model))...)
			}
		}
		for step := range fixture.Fewer(400, 100) {
			at := place()
			switch r.IntN(4) {
			case 0, 1:
				data := octets(r, 1<<r.IntN(17))
				if len(data) == 0 {
					break
				}
				u.Write(f.Handle, uint64(at), string(data))
				grow(at + len(data))
				copy(model[at:], data)
			case 2:
				u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Size: new(uint64(at))}))
				grow(at)
				model = model[:at:at]
			}
			from := place()
			got := make([]byte, r.IntN(100_000))
			n, eof, err := u.FS.Read(u.Ctx, u.Cred, f.Handle, got, uint64(from))
			u.Must(err)
			want := model[min(from, len(model)):min(from+len(got), len(model))]
			if !bytes.Equal(got[:n], want) || eof != (from+len(got) >= len(model)) {
				t.Fatalf("seed %d, step %d: %d octets at %d of %d are %d, end %v", seed, step, len(got), from, len(model), n, eof)
			}
			if a := u.GetAttr(f.Handle); a.Size != uint64(len(model)) {
				t.Fatalf("seed %d, step %d: size %d, want %d", seed, step, a.Size, len(model))
			}
		}
	})
}
