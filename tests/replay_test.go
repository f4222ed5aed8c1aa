package tests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/tests/peers"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// replayFrame is one frame of a capture. first: from the side that sent the
// first one.
type replayFrame struct {
	data  []byte
	at    time.Time
	first bool
}

func readCapture(t *testing.T, name string) (frames []replayFrame) {
	t.Helper()
	var from capture.Addr
	path := filepath.Join("..", "frame", "testdata", "captures", name+".pcap")
	for p, err := range captured.ReadFile(path, captured.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(frames) == 0 {
			from = p.Src
		}
		frames = append(frames, replayFrame{bytes.Clone(p.Data), p.Time, p.Src == from})
	}
	if len(frames) == 0 {
		t.Fatalf("%s holds no frames", path)
	}
	return frames
}

// replayed is an endpoint of ours in the place of one side of a capture.
type replayed struct {
	t      *testing.T
	conn   *dgrdma.Conn
	region *dgrdma.Region
	wire   transport.Conn // of the other side
	frames []replayFrame  // of the other side
	next   int
}

// replay puts an endpoint where the first side's frames went, or with answers
// the other way round, and runs f with the frames that it would have received.
func replay(t *testing.T, name string, p dgrdma.Profile, answers bool, f func(*replayed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &replayed{t: t}
		for _, c := range readCapture(t, name) {
			if c.first != answers {
				r.frames = append(r.frames, c)
			}
		}
		h, err := frame.Parse(r.frames[0].data)
		if err != nil {
			t.Fatal(err)
		}
		n := simnet.New(1)
		defer n.Close()
		r.wire = n.Attach(rigPeer, simnet.Config{MTU: 1500})
		r.region, _ = dgrdma.NewRegion(rigMemory)
		ep, err := dgrdma.New(n.Attach(rigOurs, simnet.Config{MTU: 1500, Poison: true}), &dgrdma.Config{ID: h.Dst, Memory: r.region, FirstFrame: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer ep.Close()
		if r.conn, err = ep.Connect(dgrdma.Peer{ID: h.Src, Addr: rigPeer, Profile: &p}); err != nil {
			t.Fatal(err)
		}
		f(r)
	})
}

// step sends the next frame of the capture, after the pause that was before it.
func (r *replayed) step() (h frame.Header, ok bool) {
	if r.next == len(r.frames) {
		return h, false
	}
	if r.next > 0 {
		time.Sleep(r.frames[r.next].at.Sub(r.frames[r.next-1].at))
	}
	data := r.frames[r.next].data
	f, err := frame.Parse(data)
	if err != nil {
		r.t.Fatalf("frame %d: %v", r.next, err)
	}
	r.next++
	head := r.wire.Caps().Headroom
	if _, err := r.wire.Send([]transport.Outgoing{{To: new(rigOurs), Buf: append(make([]byte, head), data...)}}); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
	return f.Header, true
}

func (r *replayed) all() {
	for {
		if _, ok := r.step(); !ok {
			return
		}
	}
}

// replayHolds is data that must be in memory: the pattern of transaction i.
type replayHolds struct {
	addr uint32
	i, n int
}

func replaySlots(length int, transactions ...int) (h []replayHolds) {
	for s, i := range transactions {
		h = append(h, replayHolds{0x10000 + uint32(s*((length+15)&^15)), i, length})
	}
	return h
}

// packed is DG2's completion word: opcode and length.
func packed(i, n int) uint32 { return uint32(i)<<24 | uint32(n)<<1 | 1 }

// Every capture's data, received in the place of its receiver: memory and
// completion words are those that the real receivers had, or should have had.
func TestReplayData(t *testing.T) {
	udp, ether, ether2, fpga := dgrdma.OpenCPI(true), dgrdma.OpenCPI(false), dgrdma.OpenCPI2(), dgrdma.FPGA()
	sixteen := make([]int, 16)
	for i := range sixteen {
		sixteen[i] = i
	}
	last8 := []int{96, 97, 98, 99, 92, 93, 94, 95}
	fromFPGA := []replayHolds{{0x10000, 0, 64}, {0x11000, 0, 5000}, {0x13000, 0, 12}, {0x14000, 0, 40}}
	for _, c := range []struct {
		name         string
		profile      dgrdma.Profile
		answers      bool // the side that answered is the sender
		holds        []replayHolds
		words        map[uint32]uint32
		transactions int // completed
	}{
		{"udp-flagonly", udp, false, nil, map[uint32]uint32{0x40: 1}, 1},
		{"udp-single", udp, false, replaySlots(64, 0), map[uint32]uint32{0x40: 1}, 1},
		{"udp-single-nometa", udp, false, replaySlots(64, 0), map[uint32]uint32{0x40: 1}, 1},
		{"udp-multi", udp, false, replaySlots(5000, 0), map[uint32]uint32{0x40: 1}, 1},
		{"udp-many", udp, false, replaySlots(200, last8...), map[uint32]uint32{0x40: 100}, 100},
		{"udp-loss7", udp, false, replaySlots(2000, 8, 9, 6, 7), map[uint32]uint32{0x200: 9, 0x204: 10, 0x208: 7, 0x20C: 8}, 10},
		{"ether-flagonly", ether, false, nil, map[uint32]uint32{0x40: 1}, 1},
		{"ether-single", ether, false, replaySlots(64, 0), map[uint32]uint32{0x40: 1}, 1},
		{"ether-multi", ether, false, replaySlots(5000, 0), map[uint32]uint32{0x40: 1}, 1},
		{"ether-many-doorbell", ether, false, replaySlots(200, last8...), map[uint32]uint32{0x40: 100}, 100},
		{"ether-many-doorbell", ether, true, nil, map[uint32]uint32{0x100: 100}, -1},
		{"ether-loss5-pingpong", ether, false, nil, map[uint32]uint32{0x40: 12}, 12},
		{"ether-loss5-pingpong", ether, true, nil, map[uint32]uint32{0x40: 12}, 12},
		{"ether2-flagonly", ether2, false, nil, map[uint32]uint32{0x40: 1}, 1},
		{"ether2-single", ether2, false, replaySlots(64, 0), map[uint32]uint32{0x40: packed(0, 64)}, 1},
		{"ether2-odd", ether2, false, replaySlots(1237, 0), map[uint32]uint32{0x40: packed(0, 1237)}, 1},
		{"ether2-coalesce", ether2, false, replaySlots(200, sixteen...), map[uint32]uint32{0x40: packed(15, 200)}, 16},
		{"fpga-single", ether2, false, replaySlots(64, 0), map[uint32]uint32{0x40: packed(0, 64)}, 1},
		{"fpga-multi", ether2, false, replaySlots(5000, 0), map[uint32]uint32{0x40: packed(0, 5000)}, 1},
		{"fpga-many", ether2, false, replaySlots(200, last8...), map[uint32]uint32{0x40: packed(99, 200)}, 100},
		{"fpga-lost-ack-stalls", ether2, false, replaySlots(3000, 4, 5, 6, 3), map[uint32]uint32{0x40: packed(6, 3000)}, 7},
		{"fpga-send-w1-ocpi-dg", fpga, false, fromFPGA, map[uint32]uint32{0x40: 3}, 4},
		{"fpga-send-w4-ocpi-dg2", fpga, false, fromFPGA, map[uint32]uint32{0x40: 3}, 4},
		{"fpga-send-ackonly-unpadded", fpga, false, fromFPGA, map[uint32]uint32{0x40: 3}, 4},
	} {
		t.Run(fmt.Sprintf("%s/answers %v", c.name, c.answers), func(t *testing.T) {
			replay(t, c.name, c.profile, c.answers, func(r *replayed) {
				r.all()
				for _, h := range c.holds {
					if !bytes.Equal(r.region.Bytes()[h.addr:int(h.addr)+h.n], rigPattern(h.i, h.n)) {
						t.Errorf("memory at %#x is not the data of transaction %d", h.addr, h.i)
					}
				}
				for addr, want := range c.words {
					if got := r.region.Load32(addr); got != want {
						t.Errorf("word at %#x is %#x, not %#x", addr, got, want)
					}
				}
				s := r.conn.Stats()
				if c.transactions >= 0 && int(s.Completions) != c.transactions || s.Open != 0 {
					t.Errorf("%d transactions completed, %d open", s.Completions, s.Open)
				}
				for why := range dgrdma.RefusedDown {
					if s.RefusedBy(why) != 0 {
						t.Errorf("%d frames refused: %v", s.RefusedBy(why), why)
					}
				}
			})
		})
	}
}

// The acknowledgements in the captures, received by a sender of ours that has
// sent as many frames: all of them count, and with the engine's reading all
// frames are done at the end.
func TestReplayAcknowledgements(t *testing.T) {
	udp, ether, fpga := dgrdma.OpenCPI(true), dgrdma.OpenCPI(false), dgrdma.FPGA()
	for _, c := range []struct {
		name    string
		profile dgrdma.Profile
		frames  int // acknowledged in the end
	}{
		{"udp-flagonly", udp, 1},
		{"udp-single", udp, 1},
		{"udp-single-nometa", udp, 1},
		{"udp-multi", udp, 11},
		{"udp-many", udp, 100},
		{"ether-flagonly", ether, 1},
		{"ether-multi", ether, 4},
		{"ether-many-doorbell", ether, 100},
		{"fpga-single", fpga, 1},
		{"fpga-multi", fpga, 4},
		{"fpga-many", fpga, 25},
		{"fpga-lost-ack-stalls", fpga, 18},
	} {
		t.Run(c.name, func(t *testing.T) {
			replay(t, c.name, c.profile, true, func(r *replayed) {
				done := 0
				post := func() {
					tx := &dgrdma.Transaction{
						Segments:   []dgrdma.Segment{{Addr: 0x1000, Bytes: make([]byte, r.fullFrame())}},
						Completion: dgrdma.Word(0, 1),
						Done: func(_ *dgrdma.Transaction, err error) {
							if err != nil {
								t.Error(err)
							}
							done++
						},
					}
					if err := r.conn.Post(tx); err != nil {
						t.Fatal(err)
					}
				}
				if c.profile.Cumulative {
					// The card says where it begins before it acknowledges the first.
					quirkRawTo(t, r.wire, rigOurs, frame.Header{Dst: r.conn.Peer().As, Src: r.conn.Peer().ID, Seq: 0, AckStart: 1}, nil)
					synctest.Wait()
				}
				for range c.frames {
					post()
				}
				synctest.Wait()
				for _, f := range r.frames {
					h, err := frame.Parse(f.data)
					if err != nil {
						t.Fatal(err)
					}
					r.next++
					head := r.wire.Caps().Headroom
					if _, err := r.wire.Send([]transport.Outgoing{{To: new(rigOurs), Buf: append(make([]byte, head), f.data...)}}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if c.profile.Cumulative && done != int(h.AckStart)+int(h.AckCount)-1 {
						t.Errorf("after %d from %d: %d frames done", h.AckCount, h.AckStart, done)
					}
				}
				if s := r.conn.Stats(); done != c.frames || s.RefusedBy(dgrdma.RefusedAckOfUnsent) != 0 {
					t.Errorf("%d of %d frames done; %+v", done, c.frames, s.Counters)
				}
			})
		})
	}
}

// fullFrame is how much data fills a frame to this peer.
func (r *replayed) fullFrame() int {
	n := 1500
	if m := r.conn.Profile().MaxFrame; m != 0 {
		n = m
	}
	return (n - frame.HeaderSize - frame.MessageHeaderSize) &^ 15
}

// The situation of fpga-lost-ack-stalls: the same transactions, four at a time,
// and every second frame from the engine is lost. The driver in the capture
// stalls; ours finishes.
func TestReplayLostAckDoesNotStall(t *testing.T) {
	var transactions [][]byte
	seen := make(map[uint32]bool)
	for _, c := range readCapture(t, "fpga-lost-ack-stalls") {
		f, err := frame.Parse(c.data)
		if err != nil {
			t.Fatal(err)
		}
		for cur := f.Cursor(); c.first && cur.Next(); {
			if !seen[cur.Msg.Txn] {
				seen[cur.Msg.Txn] = true
				transactions = append(transactions, rigPattern(int(cur.Msg.Txn-1), 3000))
			}
		}
	}
	if len(transactions) < 7 {
		t.Fatalf("%d transactions in the capture", len(transactions))
	}
	for odd := range 2 {
		t.Run(fmt.Sprint("lost from ", odd), func(t *testing.T) {
			rigTest(t, uint64(odd), func(t *testing.T, r *rig) {
				d := r.fpga(peers.FPGAConfig{})
				loss := rigLoss{drop: func(i int) bool { return i%2 == odd }}
				r.dial(dgrdma.FPGA(), dgrdma.Config{})
				r.heard()
				r.link(simnet.Link{}, loss.link())
				// Once what was captured, then on: it never stalls.
				for i := 0; i < 40; i += 4 {
					var wait []chan error
					for k := i; k < i+4; k++ {
						done := make(chan error, 1)
						wait = append(wait, done)
						tx := &dgrdma.Transaction{
							Segments:   []dgrdma.Segment{{Addr: 0x10000 + uint32(k%4)*3008, Bytes: transactions[k%len(transactions)]}},
							Completion: dgrdma.Word(0x40, packed(k, 3000)),
							Done:       func(_ *dgrdma.Transaction, err error) { done <- err },
						}
						if err := r.conn.Post(tx); err != nil {
							t.Fatal(err)
						}
					}
					for k, done := range wait {
						if err := <-done; err != nil {
							t.Fatal(err)
						}
						if !bytes.Equal(d.Bytes(0x10000+k*3008, 3000), transactions[(i+k)%len(transactions)]) {
							t.Errorf("slot %d differs", k)
						}
					}
				}
				if got := binary.LittleEndian.AppendUint32(nil, d.Completions()[40].Value); !bytes.Equal(got, binary.LittleEndian.AppendUint32(nil, packed(39, 3000))) {
					t.Errorf("last word %x", got)
				}
			})
		})
	}
}
