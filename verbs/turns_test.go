package verbs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// frame is a frame of MPA around any segment, with its CRC.
func frame(segment []byte) []byte {
	b := append(binary.BigEndian.AppendUint16(nil, uint16(len(segment))), segment...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// TestFaultsOfLayersBelow (RDMAP-009, 015, 031, 055, 083, 084, 087 to 089, DDP-008, 010, MPA-008, 009): a frame, or a segment, that is wrong ends the connection at once. The peer is told with
// the code of the layer that found it, and nothing after that; the program finds it in Err and in all that was posted.
func TestFaultsOfLayersBelow(t *testing.T) {
	good := append([]byte{0xc1, 0x40}, words(9<<8, uint64(0))...) // a Write of nothing
	damaged := frame(good)
	damaged[5] ^= 1
	for _, c := range []struct {
		name    string
		wire    []byte
		want    ddp.Fault
		headers bool
	}{
		{"CRC", damaged, ddp.Checksum, false},
		{"a segment shorter than its header", frame(good[:13]), ddp.Malformed, false},
		{"an empty segment", frame(nil), ddp.Malformed, false},
		{"DDP's version, tagged", frame(append([]byte{0xc2}, good[1:]...)), ddp.TaggedVersion, false},
		{"DDP's version, untagged", frame(append([]byte{0x40}, make([]byte, 17)...)), ddp.UntaggedVersion, false},
		{"an offset of no message", frame(append([]byte{0x41, 0x43}, words(0, 0, 1, 5)...)), ddp.UntaggedMO, false},
		{"a queue that there is not", frame(append([]byte{0x41, 0x43}, words(0, 7, 1, 0)...)), ddp.UntaggedQN, true},
		{"a number that is not due", frame(append([]byte{0x41, 0x43}, words(0, 0, 2, 0)...)), ddp.UntaggedMSN, true},
		{"RDMAP's version", frame(append([]byte{0xc1, 0x80}, good[2:]...)), ddp.OperationVersion, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakePeer(t, &verbs.Options{Extensions: all, Posted: []verbs.Receive{{ID: 1}}})
				list := []verbs.Work{{ID: 1, Op: verbs.OpRead, STag: theirs, Data: make([]byte, 8)}, {ID: 2, Op: verbs.OpSend, Fence: true}, {ID: 3, Op: verbs.OpSend}}
				if _, err := f.q.PostList(list); err != nil {
					t.Fatal(err)
				}
				f.settled() // the Read
				if _, err := f.nc.Write(slices.Concat(c.wire, frame(good))); err != nil && !errors.Is(err, net.ErrClosed) {
					t.Fatal(err)
				}
				came := f.settled()
				if fault(came) != c.want || len(came) != 1 || came[0].payload[2]&0x40 != 0 != c.headers {
					t.Errorf("%x came, %v, want %v", controls(came), fault(came), c.want)
				}
				f.ended(t, c.want)
				done := make([]verbs.Completion, 5)
				n := f.q.Completions().Poll(done)
				n += f.q.Received().Poll(done[n:])
				for _, d := range done[:n] {
					if !errors.Is(d.Err, verbs.ErrFlushed) || !errors.Is(d.Err, c.want) || d.Length != 0 {
						t.Errorf("completed %+v", d)
					}
				}
				if n != 4 {
					t.Errorf("%d completions, want 4", n)
				}
				if err := f.q.Post(&list[1]); !errors.Is(err, c.want) {
					t.Errorf("posted after that: %v", err)
				}
			})
		})
	}
}

// TestTerminateOfThePeer (RDMAP-017, 019, 054, 055, 057, 058, 066, 084, RDMAPX-042): the program is told what a Terminate of the peer says, of any layer, or that it cannot be read. It is not
// answered, nothing is sent after it, and what was posted fails with it.
func TestTerminateOfThePeer(t *testing.T) {
	for _, want := range []ddp.Fault{ddp.ProtectionSTag, ddp.ProtectionRights, ddp.OperationStream, ddp.TaggedBounds, ddp.UntaggedNoBuffer, ddp.Checksum, ddp.OperationUnspecified} {
		for _, inside := range []bool{false, true} { // a Send of the peer
			t.Run(fmt.Sprintf("%v,inside=%v", want, inside), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newDeafPeer(t, &verbs.Options{Extensions: all, Posted: []verbs.Receive{{ID: 1, Data: make([]byte, 200_000)}}})
					list := []verbs.Work{{ID: 1, Op: verbs.OpSend}, {ID: 2, Op: verbs.OpImmediate}, {ID: 3, Op: verbs.OpVerify, STag: theirs}, {ID: 4, Op: verbs.OpSend, Fence: true}}
					if _, err := f.q.PostList(list); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if inside {
						head := append([]byte{0x01, 0x43}, words(0, 0, 1, 0)...)
						if _, err := f.nc.Write(frame(append(head, make([]byte, 1000)...))); err != nil {
							t.Fatal(err)
						}
					}
					said := words(int(want) << 16)
					if want == ddp.OperationUnspecified {
						said = nil
					}
					f.send(untagged(0x47, 2, 1, said))
					f.listen()
					if came := f.settled(); fault(came) != 0 || len(came) > 3 || !slices.Equal(controls(came), []byte{0x43, 0x48, 0x4e}[:len(came)]) {
						t.Errorf("%x came", controls(came))
					}
					select {
					case <-f.q.Done():
					case <-time.After(time.Minute):
						t.Fatal("the queue pair goes on")
					}
					var e *verbs.TerminateError
					if err := f.q.Err(); !errors.As(err, &e) || !e.Remote || e.Fault != want {
						t.Errorf("it ended with %v, want %v", err, want)
					}
					done := make([]verbs.Completion, 6)
					n := f.q.Completions().Poll(done)
					if n != 4 {
						t.Fatalf("%d completions", n)
					}
					n += f.q.Received().Poll(done[n:])
					for i, d := range done[:n] {
						if d.Err == nil && i < 2 {
							continue // it had left
						}
						if !errors.Is(d.Err, verbs.ErrFlushed) || !errors.Is(d.Err, want) || d.Length != 0 {
							t.Errorf("completed %+v", d)
						}
					}
				})
			})
		}
	}
}

// TestWithdrawnWhileRead (RDMAP-030, 052, 102): memory that is withdrawn when a part of the answer to a Read has left: what is left does not, and the peer is told, without
// a header.
func TestWithdrawnWhileRead(t *testing.T) {
	inEpochs(t, func(t *testing.T, withdraw func(*verbs.Region)) {
		d := openHost(t).Domain()
		r, err := d.Register(make([]byte, 4<<20), verbs.RemoteRead, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := newDeafPeer(t, &verbs.Options{Domain: d})
		f.send(untagged(0x41, 1, 1, accesses[1].request(r.STag(), 0, 4<<20)))
		synctest.Wait() // this side is at the first part
		withdraw(r)
		f.listen()
		came := f.settled()
		if len(came) != 1 || fault(came) != ddp.ProtectionSTag || len(came[0].payload) != 4 {
			t.Errorf("%x came, %v", controls(came), fault(came))
		}
		f.ended(t, ddp.ProtectionSTag)
	})
}

// TestTerminateIsNotCutShort (RDMAP-083, 085, MPA-018): where sending waits for the peer, as over TLS, what the peer sends while a Terminate is on its way to it does not end the
// connection before the Terminate is there.
func TestTerminateIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openHost(t).Domain()
		r, err := d.Register(make([]byte, 8), verbs.RemoteRead|verbs.Verify, &verbs.RegionOptions{Algorithm: verbs.CRC32C})
		if err != nil {
			t.Fatal(err)
		}
		f := newDeafPeer(t, &verbs.Options{Extensions: all, Domain: d})
		f.say(0x4e, 1, 0, append(words(r.STag(), 8, uint64(0)), "hash"...)) // found to be wrong while nothing is received
		f.send(tagged(0x40, 0, 0, nil))
		synctest.Wait()
		f.listen()
		if came := f.settled(); len(came) != 1 || fault(came) != ddp.OperationStream {
			t.Errorf("%x came, %v", controls(came), fault(came))
		}
		f.ended(t, ddp.OperationStream)

		// A peer that does not take it is not waited for, for longer than the time for last words.
		f = newDeafPeer(t, &verbs.Options{Extensions: all, Domain: d})
		f.say(0x4e, 1, 0, append(words(r.STag(), 8, uint64(0)), "hash"...))
		f.send(tagged(0x40, 0, 0, nil))
		start := time.Now()
		f.ended(t, ddp.OperationStream)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// TestVerifyOfEachHash (COMMIT-013, 022 to 027, 045, 047): a Verify of memory with each algorithm, without a hash, with the right one, and with wrong ones of every
// length. The answer has the hash; another one than that of the memory ends the connection, and what waits after it is not done.
func TestVerifyOfEachHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openHost(t).Domain()
		b := pattern(1, 1000)
		c := binary.BigEndian.AppendUint32(nil, crc32.Checksum(b[100:900], crc32.MakeTable(crc32.Castagnoli)))
		s := sha256.Sum256(b[100:900])
		for algorithm, sum := range map[verbs.Algorithm][]byte{verbs.CRC32C: c, verbs.SHA256: s[:]} {
			r, err := d.Register(b, everyRight&^verbs.FlushPersistent, &verbs.RegionOptions{Algorithm: algorithm})
			if err != nil {
				t.Fatal(err)
			}
			for n := range 49 {
				for _, flip := range []int{-1, 0, n - 1} {
					want := append(slices.Clone(sum), make([]byte, 48)...)[:n]
					if flip >= 0 && n > 0 {
						want[flip] ^= 0x80
					}
					f := newFakePeer(t, &verbs.Options{Extensions: all, Domain: d})
					f.last[1] = 2
					verify := append(words(r.STag(), 800, uint64(100)), want...)
					set := words(r.STag(), 8, uint64(992), uint64(0x22))
					f.send(untagged(0x4e, 1, 1, verify), untagged(0x50, 1, 2, set))
					came := f.settled()
					seen(f.q)
					if n == 0 || n == len(sum) && flip < 0 {
						if !slices.Equal(controls(came), []byte{0x4f, 0x51}) || !bytes.Equal(came[0].payload, sum) || b[999] != 0x22 {
							t.Errorf("%v, %d bytes of hash: %x came, the marker is %x", algorithm, n, controls(came), b[999])
						}
						b[999] = 0
						f.q.Abort()
						continue
					}
					if fault(came) != ddp.OperationStream || len(came) != 1 || b[999] == 0x22 {
						t.Errorf("%v, %d bytes of hash, %d wrong: %x came, %v, the marker is %x", algorithm, n, flip, controls(came), fault(came), b[999])
					}
					f.ended(t, ddp.OperationStream)
				}
			}
		}
	})
}

// TestLongRequestsInOrder (COMMIT-008, 010, 011, 023, 033, 036): what takes its time is carried out in the order in which it came, among requests that do not; each sees what was written
// before it, and nothing of what comes after.
func TestLongRequestsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openHost(t).Domain()
		b := make([]byte, 64)
		r, err := d.Register(b, everyRight&^verbs.FlushPersistent, &verbs.RegionOptions{Algorithm: verbs.CRC32C})
		if err != nil {
			t.Fatal(err)
		}
		f := newFakePeer(t, &verbs.Options{Extensions: all, Domain: d})
		hash := func() []byte {
			return binary.BigEndian.AppendUint32(nil, crc32.Checksum(b[:32], crc32.MakeTable(crc32.Castagnoli)))
		}
		before := hash()
		list := []ddp.Message{
			untagged(0x4e, 1, 1, words(r.STag(), 32, uint64(0))),
			untagged(0x50, 1, 2, words(r.STag(), 8, uint64(0), uint64(0x0102030405060708))),
			untagged(0x4c, 1, 3, words(r.STag(), 32, uint64(0), 2)),
			untagged(0x4e, 1, 4, words(r.STag(), 32, uint64(0))),
			untagged(0x4a, 1, 5, accesses[2].request(r.STag(), 8, 8)),
			untagged(0x41, 1, 6, accesses[1].request(r.STag(), 0, 32)),
			untagged(0x4c, 1, 7, words(r.STag(), 32, uint64(0), 2)),
		}
		f.send(list...)
		came := f.settled()
		seen(f.q)
		if !slices.Equal(controls(came), []byte{0x4f, 0x51, 0x4d, 0x4f, 0x4b, 0x42, 0x4d}) {
			t.Fatalf("%x came", controls(came))
		}
		if !bytes.Equal(b[:8], []byte{1, 2, 3, 4, 5, 6, 7, 8}) || binary.NativeEndian.Uint64(b[8:]) != 1 {
			t.Errorf("memory is %x", b[:16])
		}
		after := slices.Clone(b[:32])
		clear(b[8:16]) // as it was when the second Verify was carried out
		if !bytes.Equal(came[0].payload, before) || !bytes.Equal(came[3].payload, hash()) || !bytes.Equal(came[5].payload, after) {
			t.Errorf("the hashes are %x and %x, the Read has %x", came[0].payload, came[3].payload, came[5].payload)
		}
	})
}

// TestLongRequestsHoldNothingUp (COMMIT-050): while a Verify of 2 GiB is at work, a message of its peer is received. It ends with the queue pair.
func TestLongRequestsHoldNothingUp(t *testing.T) {
	b, err := syscall.Mmap(-1, 0, math.MaxInt32, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Munmap(b)
	e := connect(t, &verbs.Options{Extensions: all}, &verbs.Options{Extensions: all, Posted: []verbs.Receive{{ID: 1}}})
	r, err := e.hb.Domain().Register(b, verbs.RemoteRead|verbs.Verify, &verbs.RegionOptions{Algorithm: verbs.SHA256})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Invalidate()
	if _, err := e.a.PostList([]verbs.Work{{ID: 1, Op: verbs.OpVerify, STag: r.STag(), Length: math.MaxInt32}, {ID: 2, Op: verbs.OpSend}}); err != nil {
		t.Fatal(err)
	}
	done := make([]verbs.Completion, 2)
	if _, err := e.b.Received().Wait(t.Context(), done); err != nil || done[0].Err != nil {
		t.Fatal(err, done[0])
	}
	if n := e.a.Completions().Poll(done); n != 0 {
		t.Errorf("the message came after the Verify: %+v", done[:n])
	}
	e.b.Abort()
	<-e.b.Done()
}
