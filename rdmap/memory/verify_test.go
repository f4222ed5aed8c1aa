package memory_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"testing"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
)

func hashOf(a memory.Algorithm, b []byte) []byte {
	if a == memory.SHA256 {
		sum := sha256.Sum256(b)
		return sum[:]
	}
	return binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// looking is a context that calls look whenever somebody asks whether it ended.
type looking struct {
	context.Context
	look func() error
}

func (l looking) Err() error { return l.look() }

// TestVerify (COMMIT-022, 024 to 027): of memory and of files, with both algorithms, of any range.
func TestVerify(t *testing.T) {
	random := seeded(t)
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	const size, offset = 3<<20 + 12345, 777
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	f := newFile(t, 0)
	for _, a := range []memory.Algorithm{memory.CRC32C, memory.SHA256} {
		o := &memory.Options{Algorithm: a, Base: 100}
		plain := register(t, domain, make([]byte, size), everything&^memory.FlushPersistent, o)
		file := registerFile(t, domain, f, offset, size, everything, o)
		for _, g := range []*memory.Grant{plain.Grant, file.Grant,
			bind(t, plain, 5000, 9000, memory.Verify, nil).Grant, bind(t, file, 5000, 9000, memory.Verify, nil).Grant} {
			content := content
			if g.Len() == size {
				if err := write(stream, g.STag(), 100, content); err != nil {
					t.Fatal(err)
				}
			} else {
				content = content[5000:14000]
			}
			for try := range 12 {
				at, n := random.IntN(len(content)), random.IntN(len(content))
				switch {
				case try == 0:
					at, n = 0, len(content)
				case try < 4: // pieces of memory, and what is left
					n = []int{1, 2, 64<<10 + 1}[try-1]
				}
				n = min(n, len(content)-at)
				to := g.Base() + uint64(at)
				want := hashOf(a, content[at:at+n])
				if len(want) != a.Size() {
					t.Fatalf("%v: hashes of %d bytes", a, a.Size())
				}
				sum, err := stream.Verify(t.Context(), g.STag(), to, uint32(n), nil)
				if err != nil || !bytes.Equal(sum, want) {
					t.Fatalf("%v of %d bytes at %d: %x, %v; want %x", a, n, at, sum, err, want)
				}
				if sum, err := stream.Verify(t.Context(), g.STag(), to, uint32(n), want); err != nil || !bytes.Equal(sum, want) {
					t.Fatalf("COMMIT-026: compared: %x, %v", sum, err)
				}
				want[random.IntN(len(want))] ^= 1 << random.IntN(8)
				if sum, err := stream.Verify(t.Context(), g.STag(), to, uint32(n), want); sum != nil || !errors.Is(err, memory.ErrMismatch) || faultOf(t, err) != 0x0207 {
					t.Fatalf("COMMIT-024: another hash: %x, %v", sum, err)
				}
			}
			for _, length := range []int{1, a.Size() - 1, a.Size() + 1, 1000} {
				if _, err := stream.Verify(t.Context(), g.STag(), g.Base(), 10, make([]byte, length)); !errors.Is(err, memory.ErrHashLength) || faultOf(t, err) != 0x0207 {
					t.Errorf("COMMIT-027: a hash of %d bytes: %v", length, err)
				}
			}
			for want, do := range map[ddp.Fault]func() ([]byte, error){
				0x0101: func() ([]byte, error) {
					return stream.Verify(t.Context(), g.STag(), g.Base()+1, uint32(len(content)), nil)
				},
				0x0100: func() ([]byte, error) { return stream.Verify(t.Context(), g.STag()^1, g.Base(), 1, nil) },
			} {
				if _, err := do(); faultOf(t, err) != want {
					t.Errorf("COMMIT-046: %v, want %v", err, want)
				}
			}
		}
	}
	without := register(t, domain, make([]byte, 10), memory.RemoteRead, nil)
	if _, err := stream.Verify(t.Context(), without.STag(), 0, 1, nil); faultOf(t, err) != 0x0102 {
		t.Errorf("COMMIT-040: %v", err)
	}
}

// TestVerifyEndsEarly: when its context does, or the memory is withdrawn, for which the owner
// does not wait longer than for a piece (COMMIT-050).
func TestVerifyEndsEarly(t *testing.T) {
	const size = 8 << 20
	over := errors.New("over")
	for name, registered := range map[string]func(*memory.Domain, *memory.Options) *memory.Region{
		"memory": func(d *memory.Domain, o *memory.Options) *memory.Region {
			return register(t, d, make([]byte, size), memory.RemoteRead|memory.Verify, o)
		},
		"file": func(d *memory.Domain, o *memory.Options) *memory.Region {
			return registerFile(t, d, newFile(t, size), 0, size, memory.RemoteRead|memory.Verify, o)
		},
	} {
		domain := memory.NewTable().NewDomain()
		stream := domain.NewStream()
		region := registered(domain, &memory.Options{Algorithm: memory.SHA256})
		looks := 0
		_, err := stream.Verify(looking{t.Context(), func() error {
			if looks++; looks == 4 {
				return over
			}
			return nil
		}}, region.STag(), 0, size, nil)
		if err != over || looks != 4 {
			t.Errorf("%s: %v after %d looks", name, err, looks)
		}
		looks = 0
		_, err = stream.Verify(looking{t.Context(), func() error {
			if looks++; looks == 4 {
				region.Invalidate() // nobody is inside, or it would never return
			}
			return nil
		}}, region.STag(), 0, size, nil)
		if err != ddp.ProtectionSTag || looks != 4 {
			t.Errorf("%s: withdrawn: %v after %d looks", name, err, looks)
		}
	}
}

// TestVerifyOfWhatIsCutMeanwhile ends (COMMIT-045), wherever the end is.
func TestVerifyOfWhatIsCutMeanwhile(t *testing.T) {
	const size = 8 << 20
	for _, left := range []int64{0, 1 << 20, 3<<20 + 5, size - 1} {
		f := newFile(t, size)
		domain := memory.NewTable().NewDomain()
		region := registerFile(t, domain, f, 0, size, memory.RemoteRead|memory.Verify, &memory.Options{Algorithm: memory.SHA256})
		looks := 0
		_, err := domain.NewStream().Verify(looking{t.Context(), func() error {
			if looks++; looks == 3 { // one for the Flush, one for each piece
				return f.Truncate(left)
			}
			return nil
		}}, region.STag(), 0, size, nil)
		if !errors.Is(err, memory.ErrLost) || faultOf(t, err) != 0x0207 {
			t.Errorf("cut to %d: %v", left, err)
		}
	}
}

// TestCloseWaitsForFlush: to withdraw a file's bytes does not wait for the disk, to unmap
// them does.
func TestCloseWaitsForFlush(t *testing.T) {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	region := registerFile(t, domain, newFile(t, 0), 0, 1<<20, everything, &memory.Options{Algorithm: memory.SHA256})
	write(stream, region.STag(), 0, make([]byte, 1<<20))
	var closing <-chan struct{}
	err := stream.Flush(looking{t.Context(), func() error {
		region.Invalidate()
		closing = async(func() { region.Close() })
		for range 1000 {
			select {
			case <-closing:
				t.Error("Close did not wait")
				return nil
			default:
				runtime.Gosched()
			}
		}
		return nil
	}}, region.STag(), 0, 1<<20, memory.FlushPersistent)
	if err != nil {
		t.Errorf("Flush: %v", err)
	}
	ended(t, closing, "Close after the Flush")
}
