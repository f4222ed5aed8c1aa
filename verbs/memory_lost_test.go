package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/tests/fixture"
	"github.com/dgrdma/dgrdma/verbs"
)

// fileSize is that of the files that are cut; fileLeft is left of them.
const fileSize, fileLeft = 64 << 12, 1 << 12

// mapped is a file in memory, as a program maps it itself.
func mapped(t *testing.T) (f *os.File, mem []byte) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err == nil {
		t.Cleanup(func() { f.Close() })
		err = f.Truncate(fileSize)
	}
	if err == nil {
		mem, err = unix.Mmap(int(f.Fd()), 0, fileSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return f, mem
}

// TestMemoryThatIsCut cuts a mapped file that is memory of one side, and checks that every operation which touches what is gone ends
// its connection, with an error at both sides, and no other connection (F1, COMMIT-015, 045).
func TestMemoryThatIsCut(t *testing.T) {
	const rights = verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.FlushGlobal | verbs.Verify
	type world struct {
		ends
		key  verbs.Key // of the memory of b
		mem  []byte    // of a program, which is not registered
		size int       // what is moved
	}
	for _, c := range []struct {
		name  string
		far   bool // the peer's memory is cut, and the operation is one-sided
		inbox bool // the peer's buffer
		word  bool // eight bytes, whatever the size
		fault verbs.Fault
		do    func(t *testing.T, w *world) error
	}{
		{"Write into a region", true, false, false, verbs.FaultLocalDDP, func(t *testing.T, w *world) error {
			if err := w.a.Write(t.Context(), w.key, 0, make([]byte, w.size)); err != nil {
				return err
			}
			return w.a.Read(t.Context(), nil, w.key, 0) // a Write is done when it has left
		}},
		{"Read of a region", true, false, false, verbs.FaultOperationStream, func(t *testing.T, w *world) error {
			return w.a.Read(t.Context(), make([]byte, w.size), w.key, 0)
		}},
		{"FetchAdd", true, false, true, verbs.FaultOperationStream, func(t *testing.T, w *world) error {
			_, err := w.a.FetchAdd(t.Context(), w.key, fileLeft, 1)
			return err
		}},
		{"CompareSwap", true, false, true, verbs.FaultOperationStream, func(t *testing.T, w *world) error {
			_, err := w.a.CompareSwap(t.Context(), w.key, fileLeft, 0, 1)
			return err
		}},
		{"Atomic Write", true, false, true, verbs.FaultOperationStream, func(t *testing.T, w *world) error {
			return w.a.AtomicWrite(t.Context(), w.key, fileLeft, [8]byte{1})
		}},
		{"Verify", true, false, false, verbs.FaultOperationStream, func(t *testing.T, w *world) error {
			_, err := w.a.Verify(t.Context(), w.key, 0, uint32(w.size), nil)
			return err
		}},
		{"Flush", true, false, false, verbs.FaultOperationStream, func(t *testing.T, w *world) error {
			return w.a.Flush(t.Context(), w.key, 0, uint32(w.size), verbs.FlushPersistent)
		}},
		{"Send into a receive", false, true, false, verbs.FaultLocalDDP, func(t *testing.T, w *world) error {
			if err := w.a.Send(t.Context(), make([]byte, w.size)); err != nil {
				return err
			}
			return w.a.Read(t.Context(), nil, w.key, 0)
		}},
		{"Read into a buffer", false, false, false, verbs.FaultLocalDDP, func(t *testing.T, w *world) error {
			return w.a.Read(t.Context(), w.mem[:w.size], w.key, 0)
		}},
		{"Write of a buffer", false, false, false, verbs.FaultCatastrophic, func(t *testing.T, w *world) error {
			return w.a.Write(t.Context(), w.key, 0, w.mem[:w.size])
		}},
		{"Send of a buffer", false, false, false, verbs.FaultCatastrophic, func(t *testing.T, w *world) error {
			return w.a.Send(t.Context(), w.mem[:w.size])
		}},
	} {
		for _, o := range []verbs.Options{{}, {Strict: true}, {NoCRC: true}, {NoCRC: true, Strict: true}} {
			// Within one frame, of a piece that is sent where it is, and of several frames.
			for _, size := range []int{fileLeft + 10, 2 * fileLeft, fileSize} {
				for _, registers := range []bool{true, false} {
					switch {
					case c.word && size > 2*fileLeft, !c.far && registers, c.name == "Flush" && !registers:
						continue
					}
					name := fmt.Sprintf("%s: crc %v, long %v, %d bytes, RegisterFile %v", c.name, !o.NoCRC, !o.Strict, size, registers)
					file, mem := mapped(t)
					far, near := make([]byte, fileSize), mem
					if c.far || c.inbox {
						far, near = mem, nil
					}
					oa, ob := o, o
					oa.Extensions, ob.Extensions = all, all
					ob.Posted = []verbs.Receive{{ID: 77, Data: far}}
					w := &world{ends: connect(t, &oa, &ob), mem: near, size: size}
					other := ends{ha: w.ha, hb: w.hb}
					other.join(t.Context(), t, &o, &o)
					region, err := w.hb.Domain().Register(far, rights, &verbs.RegionOptions{Algorithm: verbs.SHA256})
					if registers {
						region, err = w.hb.Domain().RegisterFile(file, 0, fileSize, rights|verbs.FlushPersistent, &verbs.RegionOptions{Algorithm: verbs.SHA256})
					}
					if err != nil {
						t.Fatal(err)
					}
					w.key = region.Key()
					if err := file.Truncate(fileLeft); err != nil {
						t.Fatal(err)
					}
					if err := c.do(t, w); err == nil {
						t.Errorf("%s: no error", name)
						w.a.Abort()
					}
					<-w.a.Done()
					<-w.b.Done()
					owner, peer := w.a, w.b
					if c.far || c.inbox {
						owner, peer = w.b, w.a
					}
					var said, heard *verbs.TerminateError
					if err := owner.Err(); !errors.As(err, &said) || said.Remote || said.Fault != c.fault || !errors.Is(err, verbs.ErrFileLost) {
						t.Errorf("%s: the side whose memory it is says %v", name, err)
					}
					if err := peer.Err(); !errors.As(err, &heard) || !heard.Remote || heard.Fault != c.fault {
						t.Errorf("%s: the peer hears %v", name, err)
					}
					var lost *verbs.FileLostError
					switch named := errors.As(owner.Err(), &lost); {
					case c.far && (!named || lost.STag != region.STag() || registers && !strings.Contains(owner.Err().Error(), file.Name())):
						t.Errorf("%s: %v does not name the region", name, owner.Err())
					case c.inbox && !strings.Contains(owner.Err().Error(), "the buffer of Receive 77: "):
						t.Errorf("%s: %v does not name the receive", name, owner.Err())
					case !c.far && named:
						t.Errorf("%s: %v names a region", name, owner.Err())
					}
					// Everything else goes on.
					rest, err := other.hb.Register(make([]byte, 100), verbs.RemoteRead|verbs.RemoteWrite)
					if err != nil {
						t.Fatal(err)
					}
					got := make([]byte, 100)
					if err := errors.Join(other.a.Write(t.Context(), rest.Key(), 0, pattern(1, 100)), other.a.Read(t.Context(), got, rest.Key(), 0)); err != nil || !bytes.Equal(got, pattern(1, 100)) {
						t.Errorf("%s: another connection: %v", name, err)
					}
					region.Close() // all guards were left
					w.ha.Close()
					w.hb.Close()
				}
			}
		}
	}
}

// TestMemoryCutWhileInUse cuts a file at a random moment, of which several connections write, read, change and verify a region, and send
// a mapping of their own. It checks that each of them ends and says why, that the region can be closed, and that another
// connection goes on (F1, COMMIT-015, 045).
func TestMemoryCutWhileInUse(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range fixture.Fewer(12, 4) {
		o := verbs.Options{NoCRC: round%2 == 0, Strict: round%4 > 1, Extensions: all}
		file, mem := mapped(t)
		w := connect(t, &o, &o)
		region, err := w.hb.Domain().RegisterFile(file, 0, fileSize, verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic|verbs.Verify, &verbs.RegionOptions{Algorithm: verbs.CRC32C})
		if err != nil {
			t.Fatal(err)
		}
		rest, err := w.hb.Register(make([]byte, fileSize), verbs.RemoteRead|verbs.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		key := region.Key()
		var users sync.WaitGroup
		const part = fileSize / 8 // each has its own, as no two of them agree on who writes when
		for n, f := range []func(q *verbs.QueuePair, b []byte, at uint32) error{
			func(q *verbs.QueuePair, b []byte, at uint32) error { return q.Write(t.Context(), key, at, b) },
			func(q *verbs.QueuePair, b []byte, at uint32) error { return q.Read(t.Context(), b, key, at) },
			func(q *verbs.QueuePair, _ []byte, at uint32) error {
				_, err := q.FetchAdd(t.Context(), key, at, 1)
				return err
			},
			func(q *verbs.QueuePair, _ []byte, at uint32) error {
				_, err := q.Verify(t.Context(), key, at, part, nil)
				return err
			},
			func(q *verbs.QueuePair, _ []byte, at uint32) error {
				return q.Write(t.Context(), rest.Key(), at, mem[at:][:part])
			},
			func(q *verbs.QueuePair, _ []byte, at uint32) error {
				return q.Read(t.Context(), mem[at:][:part], rest.Key(), at)
			},
		} {
			e := ends{ha: w.ha, hb: w.hb}
			e.join(t.Context(), t, &o, &o)
			users.Go(func() {
				b := make([]byte, part)
				for f(e.a, b, uint32(n*part)) == nil {
				}
				<-e.a.Done()
				<-e.b.Done()
				owner := e.b
				if n > 3 {
					owner = e.a
				}
				if err := owner.Err(); !errors.Is(err, verbs.ErrFileLost) {
					t.Errorf("seed %d, round %d, user %d: the side whose memory it is says %v", seed, round, n, err)
				}
			})
		}
		stop := make(chan struct{})
		var other sync.WaitGroup
		other.Go(func() {
			got := make([]byte, part)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := w.a.Read(t.Context(), got, rest.Key(), 6*part); err != nil {
					t.Errorf("seed %d, round %d: another connection: %v", seed, round, err)
					return
				}
			}
		})
		time.Sleep(time.Duration(r.IntN(20000)) * time.Microsecond)
		if err := file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		users.Wait()
		region.Close()
		close(stop)
		other.Wait()
		w.ha.Close()
		w.hb.Close()
	}
}
