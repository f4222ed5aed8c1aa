package captured

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
)

// pattern is a stretch of a transaction's data in memory. Byte j of transaction i
// is 31i + 7j + j/256 + 1.
type pattern struct {
	at   uint32
	i, n int
}

// captures says what testdata/captures/ORIGIN.md tells about each file.
// The counts and the digest are of the listing that a decoder written apart
// from this one made: all fields of all frames and messages, and their data.
var captures = []struct {
	name                         string
	frames, messages, duplicates int
	digest                       string

	data  []pattern         // in the memory of whoever the first frame went to
	words map[uint32]uint32 // there
	back  map[uint32]uint32 // in the memory of whoever sent the first frame
}{
	{
		name: "ether-flagonly", frames: 2, messages: 1, duplicates: 0, digest: "4daf8c51e025f6f0",
		words: map[uint32]uint32{0x40: 1},
	},
	{
		name: "ether-loss5-pingpong", frames: 40, messages: 64, duplicates: 8, digest: "a947f1f9ae3fc311",
		words: map[uint32]uint32{0x40: 12}, back: map[uint32]uint32{0x40: 12},
	},
	{
		name: "ether-many-doorbell", frames: 114, messages: 213, duplicates: 0, digest: "de4eadd24bb86a97",
		data: slots(208, 200, 96, 97, 98, 99, 92, 93, 94, 95), words: map[uint32]uint32{0x40: 100}, back: map[uint32]uint32{0x100: 100},
	},
	{
		name: "ether-multi", frames: 5, messages: 5, duplicates: 0, digest: "12f490f830039bc0",
		data: slots(5008, 5000, 0), words: map[uint32]uint32{0x40: 1},
	},
	{
		name: "ether-single", frames: 2, messages: 2, duplicates: 0, digest: "ae767bd9558663dc",
		data: slots(64, 64, 0), words: map[uint32]uint32{0x40: 1},
	},
	{
		name: "ether2-coalesce", frames: 3, messages: 17, duplicates: 0, digest: "6df21b945f44325b",
		data: slots(208, 200, ascending(16)...), words: map[uint32]uint32{0x40: 15<<24 | 200<<1 | 1},
	},
	{
		name: "ether2-flagonly", frames: 1, messages: 1, duplicates: 0, digest: "95f88aabe7acafbd",
		words: map[uint32]uint32{0x40: 1},
	},
	{
		name: "ether2-odd", frames: 1, messages: 1, duplicates: 0, digest: "88bfd9eba89a4b7f",
		data: slots(1248, 1237, 0), words: map[uint32]uint32{0x40: 1237<<1 | 1},
	},
	{
		name: "ether2-single", frames: 1, messages: 1, duplicates: 0, digest: "9365e51826d1054c",
		data: slots(64, 64, 0), words: map[uint32]uint32{0x40: 64<<1 | 1},
	},
	{
		name: "fpga-lost-ack-stalls", frames: 76, messages: 77, duplicates: 56, digest: "250864014b5a7330",
		data: slots(3008, 3000, 4, 5, 6, 3), words: map[uint32]uint32{0x40: 6<<24 | 3000<<1 | 1},
	},
	{
		name: "fpga-many", frames: 38, messages: 112, duplicates: 0, digest: "890029eada3900d6",
		data: slots(208, 200, 96, 97, 98, 99, 92, 93, 94, 95), words: map[uint32]uint32{0x40: 99<<24 | 200<<1 | 1},
	},
	{
		name: "fpga-multi", frames: 5, messages: 4, duplicates: 0, digest: "205556e02791ba56",
		data: slots(5008, 5000, 0), words: map[uint32]uint32{0x40: 5000<<1 | 1},
	},
	{
		name: "fpga-send-ackonly-unpadded", frames: 6, messages: 7, duplicates: 0, digest: "295deeeb37121829",
		data: fromFPGA, words: map[uint32]uint32{0x40: 3},
	},
	{
		name: "fpga-send-w1-ocpi-dg", frames: 7, messages: 7, duplicates: 0, digest: "21bd2820dd6d12b4",
		data: fromFPGA, words: map[uint32]uint32{0x40: 3},
	},
	{
		name: "fpga-send-w4-ocpi-dg2", frames: 4, messages: 7, duplicates: 0, digest: "7c3003910d1db0a6",
		data: fromFPGA, words: map[uint32]uint32{0x40: 3},
	},
	{
		name: "fpga-single", frames: 2, messages: 1, duplicates: 0, digest: "6a9b92565d77fc23",
		data: slots(64, 64, 0), words: map[uint32]uint32{0x40: 64<<1 | 1},
	},
	{
		name: "udp-flagonly", frames: 2, messages: 1, duplicates: 0, digest: "bce54d672d6ac337",
		words: map[uint32]uint32{0x40: 1},
	},
	{
		name: "udp-loss7", frames: 153, messages: 150, duplicates: 74, digest: "f648e911ac7d2d36",
		data: slots(2000, 2000, 8, 9, 6, 7), words: map[uint32]uint32{0x200: 9, 0x204: 10, 0x208: 7, 0x20C: 8},
	},
	{
		name: "udp-many", frames: 113, messages: 200, duplicates: 0, digest: "1cc4423510dfd445",
		data: slots(208, 200, 96, 97, 98, 99, 92, 93, 94, 95), words: map[uint32]uint32{0x40: 100},
	},
	{
		name: "udp-multi", frames: 12, messages: 12, duplicates: 0, digest: "de75157fc6ff9083",
		data: slots(5008, 5000, 0), words: map[uint32]uint32{0x40: 1},
	},
	{
		name: "udp-single", frames: 2, messages: 2, duplicates: 0, digest: "bdba614ea646628f",
		data: slots(64, 64, 0), words: map[uint32]uint32{0x40: 1},
	},
	{
		name: "udp-single-nometa", frames: 2, messages: 1, duplicates: 0, digest: "8539714edf1f8a59",
		data: slots(64, 64, 0), words: map[uint32]uint32{0x40: 1},
	},
}

func slots(stride, n int, transactions ...int) (p []pattern) {
	for s, i := range transactions {
		p = append(p, pattern{0x10000 + uint32(s*stride), i, n})
	}
	return p
}

func ascending(n int) (is []int) {
	for i := range n {
		is = append(is, i)
	}
	return is
}

// fromFPGA is what the engine was made to send.
var fromFPGA = []pattern{{0x10000, 0, 64}, {0x11000, 0, 5000}, {0x13000, 0, 12}, {0x14000, 0, 40}}

func capturePath(name string) string {
	return filepath.Join("..", "testdata", "captures", name+".pcap")
}

func TestCapturesAllUsed(t *testing.T) {
	files, err := filepath.Glob(capturePath("*"))
	if err != nil || len(files) != len(captures) {
		t.Errorf("%d files, %d cases, %v", len(files), len(captures), err)
	}
}

func TestCapturesListing(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			type id struct {
				src capture.Addr
				seq frame.Seq
			}
			seen := map[id]bool{}
			listing := sha256.New()
			frames, messages, duplicates := 0, 0, 0
			for p, err := range ReadFile(capturePath(c.name), Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				f, err := frame.Parse(p.Data)
				if err != nil || p.Cut() {
					t.Fatalf("record %d, cut %v: %v", p.Record, p.Cut(), err)
				}
				frames++
				messages += f.Messages()
				if seen[id{p.Src, f.Seq}] {
					duplicates++
				}
				seen[id{p.Src, f.Seq}] = true
				fmt.Fprintf(listing, "%d %d %d %d %d %d %d %d %x", f.Dst, f.Src, f.Seq, f.AckStart, f.AckCount,
					f.Flags, len(p.Data), len(p.Data)-frame.HeaderSize-len(f.Body()), p.Prefix)
				for m, data := range p.Messages() {
					more := 0
					if m.More {
						more = 1
					}
					fmt.Fprintf(listing, " | %d %d %d %d %d %d %d %d %d %08x", m.Txn, m.CompletionAddr, m.CompletionValue,
						m.Count, m.Index, m.Addr, m.Len, m.Type, more, crc32.ChecksumIEEE(data))
				}
				fmt.Fprintln(listing)
			}
			if frames != c.frames || messages != c.messages || duplicates != c.duplicates {
				t.Errorf("%d frames, %d messages, %d duplicates; want %d, %d, %d",
					frames, messages, duplicates, c.frames, c.messages, c.duplicates)
			}
			if digest := fmt.Sprintf("%x", listing.Sum(nil)[:8]); digest != c.digest {
				t.Errorf("listing has digest %s, want %s", digest, c.digest)
			}
		})
	}
}

// receiver is the least that applies transactions: memory is a map.
type receiver struct {
	memory map[uint32]byte
	seen   map[frame.Seq]bool
	open   map[uint32]int // data messages still missing
}

func newReceiver() *receiver {
	return &receiver{map[uint32]byte{}, map[frame.Seq]bool{}, map[uint32]int{}}
}

func (r *receiver) apply(f frame.Frame) {
	if !f.HasMessages() || r.seen[f.Seq] {
		return
	}
	r.seen[f.Seq] = true
	for c := f.Cursor(); c.Next(); {
		m := c.Msg
		for j, v := range c.Data {
			r.memory[m.Addr+uint32(j)] = v
		}
		if _, ok := r.open[m.Txn]; !ok {
			r.open[m.Txn] = max(1, int(m.Count))
		}
		if r.open[m.Txn]--; r.open[m.Txn] > 0 {
			continue
		}
		delete(r.open, m.Txn)
		if m.CompletionAddr != 0xFFFFFFFF || m.CompletionValue != 0xFFFFFFFF {
			for j := range uint32(4) {
				r.memory[m.CompletionAddr+j] = byte(m.CompletionValue >> (8 * j))
			}
		}
	}
}

func (r *receiver) word(at uint32) (v uint32) {
	for j := range uint32(4) {
		v |= uint32(r.memory[at+j]) << (8 * j)
	}
	return v
}

func TestCapturesMemory(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			receivers := map[capture.Addr]*receiver{}
			var to, from capture.Addr
			for p, err := range ReadFile(capturePath(c.name), Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				f, err := frame.Parse(p.Data)
				if err != nil {
					t.Fatal(err)
				}
				if len(receivers) == 0 {
					from, to = p.Src, p.Dst
					receivers[from], receivers[to] = newReceiver(), newReceiver()
				}
				if receivers[p.Dst] == nil {
					t.Fatalf("record %d goes to a third party, %v", p.Record, p.Dst)
				}
				receivers[p.Dst].apply(f)
			}
			memory := receivers[to].memory
			for _, d := range c.data {
				for j := range d.n {
					want := byte(31*d.i + 7*j + j>>8 + 1)
					got, ok := memory[d.at+uint32(j)]
					if got != want || !ok {
						t.Fatalf("byte %d of transaction %d at %#x: %#x (written: %v), want %#x",
							j, d.i, d.at, got, ok, want)
					}
				}
			}
			for at, want := range c.words {
				if got := receivers[to].word(at); got != want {
					t.Errorf("word at %#x: %#x, want %#x", at, got, want)
				}
			}
			for at, want := range c.back {
				if got := receivers[from].word(at); got != want {
					t.Errorf("sender's word at %#x: %#x, want %#x", at, got, want)
				}
			}
			for a, r := range receivers {
				if len(r.open) != 0 {
					t.Errorf("%v: transactions left open: %v", a, r.open)
				}
			}
		})
	}
}

// The two bytes before a frame over UDP repeat the destination there.
func TestCapturesPrefix(t *testing.T) {
	for p, err := range ReadFile(capturePath("udp-loss7"), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := p.Header(); !ok || binary.LittleEndian.Uint16(p.Prefix) != uint16(h.Dst) {
			t.Fatalf("record %d: prefix % x", p.Record, p.Prefix)
		}
	}
}

// DGRDMA-031: retransmissions carry the acknowledgement that is due when they
// are sent, and the same messages.
func TestCapturesRefreshedAcknowledgements(t *testing.T) {
	type id struct {
		src capture.Addr
		seq frame.Seq
	}
	first := map[id][]byte{}
	refreshed := 0
	for p, err := range ReadFile(capturePath("ether-loss5-pingpong"), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		h, _ := p.Header()
		before, again := first[id{p.Src, h.Seq}]
		if !again {
			first[id{p.Src, h.Seq}] = bytes.Clone(p.Data)
			continue
		}
		if !bytes.Equal(before[:6], p.Data[:6]) || !bytes.Equal(before[9:], p.Data[9:]) {
			t.Errorf("record %d: id %d has other content than before", p.Record, h.Seq)
		}
		if !bytes.Equal(before[6:9], p.Data[6:9]) {
			refreshed++
		}
	}
	if refreshed == 0 {
		t.Error("no acknowledgement was refreshed")
	}
}

// The engine never repeats an acknowledgement, so the sender repeats frames
// without an end.
func TestCapturesStall(t *testing.T) {
	sent, acked := map[frame.Seq]int{}, map[frame.Seq]int{}
	for p, err := range ReadFile(capturePath("fpga-lost-ack-stalls"), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		h, _ := p.Header()
		if h.HasMessages() {
			sent[h.Seq]++
		}
		for n := range int(h.AckCount) {
			acked[h.AckStart.Add(n)]++
		}
	}
	if sent[1] != 1 || sent[9] < 7 || sent[16] < 7 {
		t.Errorf("frames were sent so often: %v", sent)
	}
	for seq, n := range acked {
		if n != 1 {
			t.Errorf("frame %d was acknowledged %d times", seq, n)
		}
	}
}
