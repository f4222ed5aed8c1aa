package verbs_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/verbs"
)

// granted is a region, or a window of one: what peers reach by a key.
type granted interface {
	Key() verbs.Key
	Bytes() []byte
	Valid() bool
	Invalidate()
}

const grantedBytes = 64

// grant registers memory of a file, whose middle is a window, and returns one of the two, of grantedBytes.
func grant(t *testing.T, d *verbs.Domain, window bool, rights verbs.Rights, o verbs.RegionOptions) granted {
	t.Helper()
	o.Algorithm = verbs.CRC32C
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "memory"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	length := int64(grantedBytes)
	if window {
		length *= 3
	}
	if _, err := f.Write(pattern(1, int(length))); err != nil {
		t.Fatal(err)
	}
	of := rights
	if window {
		of = everyRight
	}
	r, err := d.RegisterFile(f, 0, length, of, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if !window {
		return r
	}
	w, err := r.Bind(grantedBytes, grantedBytes, rights, &o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

const everyRight = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.FlushPersistent | verbs.FlushGlobal | verbs.Verify

// inMemory runs a test for a region and for a window, in virtual time.
func inMemory(t *testing.T, test func(t *testing.T, window bool)) {
	for _, window := range []bool{false, true} {
		t.Run(map[bool]string{false: "region", true: "window"}[window], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, window) })
		})
	}
}

// TestAccessNeedsItsRight (RDMAP-018, 032, 033, 039, 095, 101, RDMAPX-017, 023, COMMIT-010, 014, 034, 037, 040, 046, 047): every access to a region and to a window, with
// every set of rights. It is carried out if the set has what the access needs; otherwise nothing is touched, and the connection ends with the
// fault for missing rights, which for a Write is that of an STag that is not valid. The right LocalWrite gives peers nothing.
func TestAccessNeedsItsRight(t *testing.T) {
	o := &verbs.Options{Extensions: all}
	inMemory(t, func(t *testing.T, window bool) {
		h := openHost(t)
		o.Domain = h.Domain()
		for rights := range everyRight + 1 {
			if rights&verbs.Verify != 0 && rights&verbs.RemoteRead == 0 {
				continue // COMMIT-030: cannot be registered
			}
			g := grant(t, o.Domain, window, rights, verbs.RegionOptions{Base: 1 << 40})
			for _, a := range accesses {
				before := bytes.Clone(g.Bytes())
				f := newFakePeer(t, o)
				came := a.do(f, g.Key().STag, g.Key().Offset+8, 8)
				seen(f.q)
				changed := !bytes.Equal(g.Bytes(), before)
				if a.needs&^rights == 0 {
					if !a.answered(came) || changed != a.changes {
						t.Errorf("%s with %v: %x came, changed %v", a.name, rights, controls(came), changed)
					} else if a.answer == 0x42 && !bytes.Equal(came[0].payload, before[8:16]) {
						t.Errorf("%s with %v reads %x, want %x", a.name, rights, came[0].payload, before[8:16])
					} else if sum := crc32.Checksum(before[8:16], crc32.MakeTable(crc32.Castagnoli)); a.answer == 0x4f && !bytes.Equal(came[0].payload, words(sum)) {
						t.Errorf("%s with %v is answered with %x, want %08x", a.name, rights, came[0].payload, sum)
					}
					f.q.Abort()
					continue
				}
				want := a.fault(ddp.ProtectionRights, ddp.TaggedSTag)
				if got := fault(came); len(came) != 1 || got != want || changed {
					t.Errorf("%s with %v: %x came, %v, want %v; changed %v", a.name, rights, controls(came), got, want, changed)
				}
				f.ended(t, want)
			}
			g.Invalidate()
		}
	})
}

// TestAccessOutside (RDMAP-052, 095, 098 to 100, RDMAPX-017, 046, COMMIT-044, 046, 047, DDP-008): every access that has its right, and another fault: the STag, the
// domain, the queue pair or the offsets. It touches nothing, and the connection ends with that fault.
func TestAccessOutside(t *testing.T) {
	inMemory(t, func(t *testing.T, window bool) {
		h := openHost(t)
		d, other := h.Domain(), h.NewDomain()
		o := &verbs.Options{Extensions: all, Domain: d}
		sibling := newFakePeer(t, o)
		const base = 1 << 40
		at := func(to uint64) func(*testing.T, *fakePeer) (granted, uint64) {
			return func(t *testing.T, _ *fakePeer) (granted, uint64) {
				return grant(t, d, window, everyRight, verbs.RegionOptions{Base: base}), to
			}
		}
		of := func(d *verbs.Domain, only func(*fakePeer) *verbs.Stream) func(*testing.T, *fakePeer) (granted, uint64) {
			return func(t *testing.T, f *fakePeer) (granted, uint64) {
				return grant(t, d, window, everyRight, verbs.RegionOptions{Base: base, Only: only(f)}), base
			}
		}
		every := func(*fakePeer) *verbs.Stream { return nil }
		for _, c := range []struct {
			name             string
			of               func(t *testing.T, f *fakePeer) (granted, uint64)
			key              uint32 // what is wrong with the key
			request, segment ddp.Fault
		}{
			{"nothing wrong", at(base), 0, 0, 0},
			{"nothing wrong, the last bytes", at(base + grantedBytes - 8), 0, 0, 0},
			{"its own", of(d, func(f *fakePeer) *verbs.Stream { return f.q.Stream() }), 0, 0, 0},
			{"another key", at(base), 1, ddp.ProtectionSTag, ddp.TaggedSTag},
			{"an STag that nobody has", at(base), 1 << 20, ddp.ProtectionSTag, ddp.TaggedSTag},
			{"another domain's", of(other, every), 0, ddp.ProtectionAssociation, ddp.TaggedAssociation},
			{"another queue pair's", of(d, func(*fakePeer) *verbs.Stream { return sibling.q.Stream() }), 0, ddp.ProtectionAssociation, ddp.TaggedAssociation},
			{"withdrawn", func(t *testing.T, f *fakePeer) (granted, uint64) {
				g, to := at(base)(t, f)
				g.Invalidate()
				return g, to
			}, 0, ddp.ProtectionSTag, ddp.TaggedSTag},
			{"before it", at(base - 8), 0, ddp.ProtectionBounds, ddp.TaggedBounds},
			{"over its beginning", at(base - 1), 0, ddp.ProtectionBounds, ddp.TaggedBounds},
			{"over its end", at(base + grantedBytes - 7), 0, ddp.ProtectionBounds, ddp.TaggedBounds},
			{"after it", at(base + grantedBytes), 0, ddp.ProtectionBounds, ddp.TaggedBounds},
			{"over the end of the offsets", at(math.MaxUint64 - 6), 0, ddp.ProtectionWrap, ddp.TaggedWrap},
		} {
			for _, a := range accesses {
				f := newFakePeer(t, o)
				g, to := c.of(t, f)
				was := bytes.Clone(g.Bytes())
				came := a.do(f, g.Key().STag^c.key, to, 8)
				seen(f.q)
				if c.request == 0 {
					if !a.answered(came) {
						t.Errorf("%s, %s: %x came, %v", a.name, c.name, controls(came), fault(came))
					}
					f.q.Abort()
					continue
				}
				want := a.fault(c.request, c.segment)
				if got := fault(came); got != want || len(came) != 1 || !bytes.Equal(g.Bytes(), was) {
					t.Errorf("%s, %s: %x came, %v, want %v; memory %x", a.name, c.name, controls(came), got, want, g.Bytes())
				}
				f.ended(t, want)
			}
		}
	})
}

// TestFaultsAreToldAtOnce (RDMAP-095, RDMAPX-017, COMMIT-014, 046): a request without its right, or of memory that is not there, is refused when it comes, before those are answered that
// came before it.
func TestFaultsAreToldAtOnce(t *testing.T) {
	inMemory(t, func(t *testing.T, window bool) {
		o := &verbs.Options{Extensions: all, Domain: openHost(t).Domain()}
		good := grant(t, o.Domain, window, everyRight, verbs.RegionOptions{}).Key().STag
		for _, a := range accesses {
			if a.request == nil {
				continue
			}
			for right := verbs.RemoteRead; right <= verbs.Verify; right <<= 1 {
				if a.needs&right == 0 {
					continue
				}
				bad := grant(t, o.Domain, window, everyRight&^right&^map[bool]verbs.Rights{true: verbs.Verify}[right == verbs.RemoteRead], verbs.RegionOptions{}).Key().STag
				for stag, want := range map[uint32]ddp.Fault{bad: ddp.ProtectionRights, good ^ 1: ddp.ProtectionSTag} {
					f := newDeafPeer(t, o)
					came := f.atOnce(t, untagged(0x41, 1, 1, accesses[1].request(good, 8, 8)), untagged(a.control, 1, 2, a.request(stag, 8, 8)))
					if fault(came) != want || len(came) != 1 {
						t.Errorf("%s without %v: %x came, %v, want %v", a.name, right, controls(came), fault(came), want)
					}
					f.ended(t, want)
				}
			}
		}
	})
}

// TestWordsAreAligned (RDMAPX-010, 011, COMMIT-031, 032, 036): the address of what is changed at once is a multiple of eight, and its offset need not be. At another one
// nothing is changed, and the connection ends; other accesses may begin anywhere.
func TestWordsAreAligned(t *testing.T) {
	inMemory(t, func(t *testing.T, window bool) {
		o := &verbs.Options{Extensions: all, Domain: openHost(t).Domain()}
		for base := range uint64(8) {
			g := grant(t, o.Domain, window, everyRight, verbs.RegionOptions{Base: base})
			for at := range uint64(9) {
				for _, a := range accesses {
					f := newFakePeer(t, o)
					was := bytes.Clone(g.Bytes())
					came := a.do(f, g.Key().STag, base+at, 8)
					seen(f.q)
					if a.control == 0x50 && at%8 == 0 && !bytes.Equal(g.Bytes()[at:at+8], words(uint64(0x1111))) {
						t.Errorf("%s leaves %x", a.name, g.Bytes()[at:at+8])
					}
					if at%8 == 0 || a.control != 0x4a && a.control != 0x50 {
						if !a.answered(came) {
							t.Errorf("%s, offset %d of base %d: %x came, %v", a.name, at, base, controls(came), fault(came))
						}
						f.q.Abort()
						continue
					}
					if got := fault(came); got != ddp.OperationStream || len(came) != 1 || !bytes.Equal(g.Bytes(), was) {
						t.Errorf("%s, offset %d of base %d: %x came, %v; memory %x", a.name, at, base, controls(came), got, g.Bytes())
					}
					f.ended(t, ddp.OperationStream)
				}
			}
		}
	})
}

// TestAccessToNothing (RDMAP-040, DDP-009, COMMIT-014, 019): of a Write or Read of nothing neither STag nor offset are looked at; of a Flush or Verify of
// nothing the STag and the right are.
func TestAccessToNothing(t *testing.T) {
	inMemory(t, func(t *testing.T, window bool) {
		h := openHost(t)
		o := &verbs.Options{Extensions: all, Domain: h.Domain()}
		good := grant(t, o.Domain, window, everyRight, verbs.RegionOptions{}).Key().STag
		gone := grant(t, o.Domain, window, everyRight, verbs.RegionOptions{})
		gone.Invalidate()
		for name, c := range map[string]struct {
			stag  uint32
			fault ddp.Fault // of what is looked at
		}{
			"no STag":           {0, ddp.ProtectionSTag},
			"good":              {good, 0},
			"another key":       {good ^ 1, ddp.ProtectionSTag},
			"withdrawn":         {gone.Key().STag, ddp.ProtectionSTag},
			"another domain's":  {grant(t, h.NewDomain(), window, everyRight, verbs.RegionOptions{}).Key().STag, ddp.ProtectionAssociation},
			"without any right": {grant(t, o.Domain, window, 0, verbs.RegionOptions{}).Key().STag, ddp.ProtectionRights},
		} {
			for _, to := range []uint64{0, grantedBytes, math.MaxUint64} {
				for _, a := range accesses {
					looked := a.control == 0x4c || a.control == 0x4e
					if !looked && a.control != 0x40 && a.control != 0x41 {
						continue // always of eight bytes
					}
					f := newFakePeer(t, o)
					came := a.do(f, c.stag, to, 0)
					what := fmt.Sprintf("%s of nothing, %s, at %#x", a.name, name, to)
					if !looked || c.fault == 0 {
						if !a.answered(came) {
							t.Errorf("%s: %x came, %v", what, controls(came), fault(came))
						}
						f.q.Abort()
						continue
					}
					if got := fault(came); got != c.fault || len(came) != 1 {
						t.Errorf("%s: %x came, %v, want %v", what, controls(came), got, c.fault)
					}
					f.ended(t, c.fault)
				}
			}
		}
	})
}

// TestWhatAPeerInvalidates (RDMAP-014, 015, 023, 050 to 052, 072, 094, 103, RDMAPX-006): each kind of message for a receive, with the STag of each kind of memory. One that
// invalidates is delivered where the memory is its queue pair's alone, which is withdrawn before; otherwise the program hears of no message, the
// memory stays, and the connection ends. Of other messages the STag is not looked at.
func TestWhatAPeerInvalidates(t *testing.T) {
	inMemory(t, func(t *testing.T, window bool) {
		h := openHost(t)
		d := h.Domain()
		o := &verbs.Options{Extensions: all, Domain: d, Posted: []verbs.Receive{{ID: 7, Data: make([]byte, 16)}, {ID: 8}}}
		sibling := newFakePeer(t, o)
		of := func(d *verbs.Domain, only *verbs.Stream) granted {
			return grant(t, d, window, everyRight, verbs.RegionOptions{Only: only})
		}
		for _, m := range []struct {
			name                   string
			control                byte
			invalidates, solicited bool
		}{
			{"Send", 0x43, false, false}, {"Send with SE", 0x45, false, true}, {"Send with Invalidate", 0x44, true, false},
			{"Send with SE and Invalidate", 0x46, true, true}, {"Immediate", 0x48, false, false}, {"Immediate with SE", 0x49, false, true},
		} {
			for _, c := range []struct {
				name string
				of   func(f *fakePeer) granted
				can  bool
			}{
				{"its own", func(f *fakePeer) granted { return of(d, f.q.Stream()) }, true},
				{"its domain's", func(*fakePeer) granted { return of(d, nil) }, false},
				{"another queue pair's", func(*fakePeer) granted { return of(d, sibling.q.Stream()) }, false},
				{"another domain's", func(*fakePeer) granted { return of(h.NewDomain(), nil) }, false},
				{"withdrawn", func(f *fakePeer) granted { g := of(d, f.q.Stream()); g.Invalidate(); return g }, false},
				{"none", func(*fakePeer) granted { return nil }, false},
			} {
				f := newFakePeer(t, o)
				g := c.of(f)
				stag, valid := uint32(0), false
				if g != nil {
					stag, valid = g.Key().STag, g.Valid()
				}
				came := f.say(m.control, 0, stag, words(uint64(5)))
				what := fmt.Sprintf("%s, %s", m.name, c.name)
				done := make([]verbs.Completion, 4)
				if m.invalidates && !c.can {
					f.ended(t, ddp.ProtectionInvalidate)
					if fault(came) != ddp.ProtectionInvalidate || valid != (g != nil && g.Valid()) {
						t.Errorf("%s: %x came, %v; valid %v", what, controls(came), fault(came), valid)
					}
					if n := f.q.Received().Poll(done); n != 2 || done[0].Err == nil || done[1].Err == nil {
						t.Errorf("%s: received %+v", what, done[:n])
					}
					continue
				}
				n := f.q.Received().Poll(done)
				if n != 1 || len(came) != 0 || done[0].Err != nil || done[0].ID != 7 || done[0].Length != 8 || done[0].Solicited != m.solicited ||
					done[0].Invalidated != m.invalidates || m.invalidates && done[0].STag != stag || !m.invalidates && done[0].STag != 0 {
					t.Errorf("%s: received %+v, %x came", what, done[:n], controls(came))
				}
				if g != nil && g.Valid() != (valid && !m.invalidates) {
					t.Errorf("%s: valid %v", what, g.Valid())
				}
				if m.invalidates { // RDMAP-051: and is of no use from then on
					if got := fault(accesses[1].do(f, stag, 0, 8)); got != ddp.ProtectionSTag {
						t.Errorf("%s, then a Read of that: %v", what, got)
					}
				}
				f.q.Abort()
			}
		}
	})
}
