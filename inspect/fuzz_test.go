package inspect_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/seal"
)

// FuzzAnalyzer feeds frames of any content at any time, and compares sums that
// must agree whatever happened.
func FuzzAnalyzer(f *testing.F) {
	for _, name := range []string{"ether-loss5-pingpong", "udp-loss7", "fpga-lost-ack-stalls"} {
		var all []byte
		r := openCapture(f, name)
		for p, err := r.Next(); err == nil; p, err = r.Next() {
			n := min(len(p.Data), 80)
			all = append(append(all, 1, byte(p.Src.MAC[5]), byte(n)), p.Data[:n]...)
		}
		f.Add(all)
	}
	hello := make([]byte, frame.HandshakeSize)
	(&frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}).Put(hello, 2, 1)
	hello = append(hello, services(f, "memory", "link")...)
	f.Add(append([]byte{1, 1, byte(len(hello))}, hello...))
	sealed := capturetest.Sealed(f, 1, 2)
	var all []byte
	for _, b := range [][]byte{
		sealed.Question, sealed.Challenge, sealed.First, sealed.Second, sealed.There(seal.Salt{1}, 40), sealed.There(seal.Salt{2}, 40), sealed.Back(seal.Salt{3}, 20), sealed.Unasked, hello,
	} {
		all = append(append(all, 1, b[2], byte(len(b))), b...)
	}
	f.Add(all)
	lost := told(f, 2, 1, 3, 3, 0, udp(f, 1, 2, 41, 42, append([]byte{2, 0}, hello...))).Data
	f.Add(append([]byte{0x81, 0, byte(len(lost))}, lost...))
	for _, checks := range []bool{false, true} {
		var all []byte
		for _, s := range capturetest.Sessions(checks) {
			n := min(len(s.Data), 255)
			all = append(append(all, 1, s.Data[2], byte(n)), s.Data[:n]...)
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a := inspect.New()
		at := time.Unix(1e9, 0)
		frames := 0
		for record := 1; len(b) > 3; record++ {
			// Steps of any size, back as well; few addresses; any bytes.
			at = at.Add(time.Duration(int8(b[0])) << (b[1] >> 4 * 3))
			n := min(int(b[2]), len(b)-3)
			if b[0] == 0x81 { // what the network says
				tap := inspect.Tap{Source: &records{packet(101, b[3:3+n])}, Analyzer: a}
				if _, err := tap.Next(); err != nil {
					t.Fatal(err)
				}
				b = b[3+n:]
				continue
			}
			p := captured.Packet{Packet: capture.Packet{Record: record, Time: at, Data: b[3 : 3+n], Length: n}}
			p.Src.MAC[5], p.Dst.MAC[5] = b[1]&1, ^b[1]&1
			if b[0] == 0x80 {
				p.Length += 100
			}
			if b[0] == 0x7f { // the rest of its record is behind the snap length
				p.Segment, p.Segments = 1, 1+n
			}
			a.Add(&p)
			frames++
			b = b[3+n:]
		}
		r := a.Report()
		if r.Capture.Frames != frames {
			t.Fatalf("%d frames, want %d", r.Capture.Frames, frames)
		}
		for _, f := range r.Flows {
			if settled := f.Acked + f.Unacked + f.Pending + f.Abandoned; f.Firsts != settled || f.Resent < f.ResentIDs || f.WithMessages < f.Firsts+f.Resent+f.Duplicates {
				t.Errorf("%d of %d frames with messages are first ones, %d settled, %d and %d copies", f.Firsts, f.WithMessages, settled, f.Resent, f.Duplicates)
			}
			if n := f.Transactions; n.Begun != n.Completed+n.UnderWay+n.CutOff+n.Never {
				t.Errorf("transactions do not add up: %+v", n)
			}
			for _, m := range f.Marks {
				if m.At < 0 {
					t.Errorf("mark at %v", m.At)
				}
			}
		}
		sealed := 0
		for _, w := range r.Sealed {
			sealed += int(w.Frames)
			if w.Missing < 0 || w.Late+w.Copies+w.Strays > int(w.Frames) || w.Unasked > w.Challenges || w.Ended+w.Unended > w.Questions+w.Firsts || w.First > w.Last {
				t.Errorf("%+v", w)
			}
		}
		if sealed != r.Capture.Sealed {
			t.Errorf("%d sealed frames, want %d", r.Capture.Sealed, sealed)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
