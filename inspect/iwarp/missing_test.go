package iwarp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// story tells what was read in few words, what came several times in a row once with the number.
func story(t testing.TB, o iwarp.Options, records []capture.Record) (all []string) {
	t.Helper()
	last, n := "", 0
	say := func(s string) {
		if s != last && n > 1 {
			all[len(all)-1] += fmt.Sprint(" x", n)
		}
		if s == last {
			n++
		} else {
			all, last, n = append(all, s), s, 1
		}
	}
	eventsOf(t, o, records, func(e *iwarp.Event) {
		switch {
		case e.Kind == iwarp.Gone && e.Why == "", e.Kind == iwarp.Finished:
		case e.Kind == iwarp.Frame:
			s := "frame, CRC " + e.CRC.String()
			if e.Absent > 0 {
				s += fmt.Sprintf(", %d absent", e.Absent)
			}
			if e.NoHeader {
				s += ", no header"
			}
			if !e.Fits && !e.NoHeader {
				s += ", does not fit"
			}
			if e.Fault != nil {
				s += ", " + e.Fault.Error()
			}
			if e.WantMSN != 0 || e.Odd != "" {
				s += fmt.Sprint(", ", e.WantMSN, e.Odd)
			}
			say(s)
		case e.N == 0 && e.Why == "":
			say(e.Kind.String())
		default:
			say(strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.N, " ", e.Why)))
		}
	})
	say("")
	return all[:max(len(all)-1, 0)]
}

func TestWhatIsMissing(t *testing.T) {
	// without the n-th segment with many bytes
	gap := func(records []capture.Record, n int) []capture.Record {
		for i := range records {
			if mustSegment(t, &records[i]).Length > 1000 {
				if n--; n == 0 {
					return without(records, i+1)
				}
			}
		}
		t.Fatal("no such segment")
		return nil
	}
	read := func(name string) []capture.Record { return records.Of(t, testdata+name+".pcap") }
	cutLong := func(records []capture.Record, n int) []capture.Record { // those with many bytes, at a snap length
		records = slices.Clone(records)
		for i := range records {
			if r := &records[i]; len(r.Data) > 1000 {
				r.Data = r.Data[:n]
			}
		}
		return records
	}
	shifted := func(records []capture.Record) []capture.Record { // as between other ports
		records = slices.Clone(records)
		for i := range records {
			r := &records[i]
			r.Data = bytes.Clone(r.Data)
			s := mustSegment(t, r)
			s.Seq += 1 << 30
			*r = segmentLike(t, r, &s)
		}
		return records
	}
	any7000 := iwarp.Options{Ports: []uint16{7000}}
	const headers = 66 // of Ethernet, IP and TCP
	for _, c := range []struct {
		name    string
		o       iwarp.Options
		records []capture.Record
		want    []string
	}{
		// A Write of 46 frames, each in a segment of its own; a Send of 47, and a Write of three in many segments.
		{"a frame, with CRC", iwarp.Options{}, gap(read("write-65537"), 12), []string{"setup x2", "frame, CRC good x11", "missing 1448", "found 1448", "frame, CRC good x35"}},
		{"a frame, without CRC", iwarp.Options{}, gap(read("send-65537-nocrc"), 10), []string{"setup x2", "frame, CRC off x9", "missing 1448", "given up 1448 without CRC nothing proves where a frame begins"}},
		{"the middle of a frame", iwarp.Options{}, gap(read("write-65537-gso"), 12), []string{"setup x2", "frame, CRC unchecked, 1448 absent", "frame, CRC good x3"}},
		{"the request", iwarp.Options{}, without(read("term-write-bounds"), 1, 4), []string{"setup", "found 40", "frame, CRC good x2"}},
		{"the set-up, with CRC", iwarp.Options{}, read("write-65537")[8:], []string{"begins", "frame, CRC good x46"}},
		{"the set-up and the begin of a frame", iwarp.Options{}, read("write-65537-gso")[12:], []string{"begins 24616", "frame, CRC good x3"}},
		{"the set-up, without CRC", iwarp.Options{}, read("send-65537-nocrc")[8:], nil},
		{"the set-up, without CRC, of a port that was named", any7000, read("send-65537-nocrc")[8:], []string{"given up 65220 no frame was found again"}},
		{"the ends of all frames", iwarp.Options{}, cutLong(read("write-65537"), 120), []string{"setup x2", "frame, CRC unchecked, 1394 absent x45", "frame, CRC unchecked, 1246 absent", "frame, CRC good"}},
		{"the ends of all frames, without CRC", iwarp.Options{}, cutLong(read("send-65537-nocrc"), 120), []string{"setup x2", "frame, CRC unchecked, 1394 absent x46", "frame, CRC off"}},
		{"all frames but their lengths", iwarp.Options{}, cutLong(read("write-65537"), headers+2), []string{"setup x2", "frame, CRC unchecked, 1446 absent, no header x45", "frame, CRC unchecked, 1298 absent, no header", "frame, CRC good"}},
		{"all frames", iwarp.Options{}, cutLong(read("write-65537"), headers), []string{"setup x2", "missing 1448", "found 66460", "frame, CRC good"}},
		{"nothing, twice on the same ports", iwarp.Options{}, slices.Concat(read("term-write-bounds")[:10], shifted(read("term-write-bounds"))),
			[]string{"setup x2", "frame, CRC good x2", "gone 0 its ports are used for another connection", "setup x2", "frame, CRC good x2"}},
		{"the end, within a frame", iwarp.Options{}, read("write-65537-gso")[:20], []string{"setup x2", "incomplete 17376"}},
		{"the reply", iwarp.Options{}, without(read("term-write-bounds"), 2, 6), []string{"setup", "frame, CRC good", "found", "frame, CRC good"}},
		{"the other side", iwarp.Options{}, without(read("term-write-bounds"), 2, 6, 9, 10, 11, 13), []string{"setup", "frame, CRC good"}},
	} {
		got := story(t, c.o, c.records)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// said is a connection of which the two ends say what they are given, each in a segment.
func said(parts ...[]byte) (records []capture.Record) {
	seq := [2]uint32{100, 1<<32 - 30} // the second wraps
	put := func(w int, flags byte, data []byte) {
		b := make([]byte, 40, 40+len(data))
		b[0], b[9], b[32], b[33], b[34] = 0x45, 6, 5<<4, flags, 1
		binary.BigEndian.PutUint16(b[2:], uint16(40+len(data)))
		b[15], b[19] = byte(1+w), byte(2-w)
		b[21], b[23] = byte(1+w), byte(2-w)
		binary.BigEndian.PutUint32(b[24:], seq[w])
		binary.BigEndian.PutUint32(b[28:], seq[1-w])
		b = append(b, data...)
		seq[w] += uint32(len(data))
		if flags&(capture.SYN|capture.FIN) != 0 {
			seq[w]++
		}
		records = append(records, capture.Record{LinkType: 101, Data: b, Length: len(b)})
	}
	put(0, capture.SYN, nil)
	put(1, capture.SYN|capture.ACK, nil)
	for i, p := range parts {
		put(i%2, capture.ACK, p)
	}
	return records
}

func request(flags byte) []byte { return append([]byte("MPA ID Req Frame"), flags, 1, 0, 0) }
func reply(flags byte) []byte   { return append([]byte("MPA ID Rep Frame"), flags, 1, 0, 0) }

// fpdu makes a frame, with a CRC.
func fpdu(h ddp.Header, payload []byte) []byte {
	b := make([]byte, 2+h.Size())
	h.Put(b[2:])
	b = append(b, payload...)
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func send(msn uint32, n int) []byte {
	return fpdu(ddp.Header{Last: true, Control: 0x43, MSN: msn}, make([]byte, n))
}

// TestWhatIsWrong: frames that are not as they should be, and what follows them.
func TestWhatIsWrong(t *testing.T) {
	const crc, markers, reject = 0x40, 0x80, 0x20
	spoiled := func(b []byte, at int) []byte { b[at] ^= 0x80; return b }
	terminate := func(b ...byte) []byte { return fpdu(ddp.Header{Last: true, Control: 0x47, QN: 2, MSN: 1}, b) }
	var many []byte
	for i := range uint32(60) {
		many = append(many, send(2+i, 900)...)
	}
	for _, c := range []struct {
		name  string
		parts [][]byte
		want  []string
	}{
		{"MPA-009: a CRC", [][]byte{request(crc), reply(crc), spoiled(send(1, 9), 25), nil, send(2, 9)}, []string{"setup x2", "frame, CRC bad", "frame, CRC good"}},
		{"a length, with CRC", [][]byte{request(crc), reply(crc), append(spoiled(send(1, 9), 0), many...)},
			[]string{"setup x2", "frame, CRC bad", "lost 0 what should be a frame, 8 bytes long by its first two, has no header that makes sense", "found 496", "frame, CRC good x24"}},
		{"a header, without CRC", [][]byte{request(0), reply(0), spoiled(send(1, 9), 3), nil, send(2, 9)}, []string{"setup x2", "frame, CRC off, does not fit", "frame, CRC off"}},
		{"two headers, without CRC", [][]byte{request(0), reply(0), append(spoiled(send(1, 9), 3), spoiled(send(2, 9), 3)...)},
			[]string{"setup x2", "frame, CRC off, does not fit", "lost 0 what should be a frame, 36 bytes long by its first two, has no header that makes sense", "given up 36 without CRC nothing proves where a frame begins"}},
		{"DDP-003: MO", [][]byte{request(crc), reply(crc), fpdu(ddp.Header{Last: true, Control: 0x43, MSN: 1, MO: 7}, nil)}, []string{"setup x2", "frame, CRC good, DDP: untagged buffer: invalid message offset (1/2/04)"}},
		{"DDP-002: MSN", [][]byte{request(crc), reply(crc), send(1, 1), nil, send(3, 1)}, []string{"setup x2", "frame, CRC good", "frame, CRC good, 2"}},
		{"an answer to nothing", [][]byte{request(crc), reply(crc), fpdu(ddp.Header{Tagged: true, Last: true, Control: 0x42}, nil)}, []string{"setup x2", "frame, CRC good, 0answers nothing that was asked for"}},
		{"MPA-005: markers", [][]byte{request(markers), reply(0), send(1, 1), send(1, 1)}, []string{"setup x2", "given up 0 its receiver asked for markers, which are not understood", "frame, CRC off"}},
		{"markers that were refused", [][]byte{request(markers), reply(reject)}, []string{"setup x2"}},
		{"no reply", [][]byte{request(crc), []byte("HTTP/1.1 400 Bad Request")}, []string{"setup", `given up 24 it does not begin with a frame of MPA's set-up, but with "HTTP/1.1 400 Bad"`}},
		{"RDMAP-058: a Terminate of one byte", [][]byte{request(crc), reply(crc), terminate(1)}, []string{"setup x2", "frame, CRC good"}},
		{"half of a request", [][]byte{request(crc)[:19]}, nil},
		{"another protocol", [][]byte{[]byte("GET / HTTP/1.1")}, nil},
	} {
		got := story(t, iwarp.Options{}, said(c.parts...))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTerminates reads both orders of bits (S1): that of RFC 5040, and that of siw.
func TestTerminates(t *testing.T) {
	header := []byte{0xc1, 0x40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 9}
	for _, c := range []struct {
		message []byte
		fault   ddp.Fault
		swapped bool
		header  bool
	}{
		{append([]byte{0x11, 1, 0xc0, 0, 0, 100}, header...), ddp.TaggedBounds, false, true},
		{append([]byte{0x11, 1, 0x03, 0, 0, 100}, header...), ddp.TaggedBounds, true, true},
		{[]byte{0x12, 3, 0xc0, 0}, ddp.UntaggedMSN, false, false},
		{[]byte{0x21, 3, 0x03, 0}, ddp.UntaggedMSN, true, false},
		{[]byte{0x20, 6, 0, 0}, ddp.OperationOpcode, true, false}, // from siw
		{[]byte{0x02, 6, 0, 0}, ddp.OperationOpcode, false, false},
	} {
		found := false
		eventsOf(t, iwarp.Options{}, said(request(0), reply(0), send(1, 1), fpdu(ddp.Header{Last: true, Control: 0x47, QN: 2, MSN: 1}, c.message)), func(e *iwarp.Event) {
			if e.Terminate == nil {
				return
			}
			found = true
			if x := e.Terminate; x.Fault != c.fault || x.Swapped != c.swapped || x.HasHeader != c.header {
				t.Errorf("%x: %v, swapped %v, header %v", c.message, x.Fault, x.Swapped, x.HasHeader)
			}
		})
		if !found {
			t.Errorf("%x is no Terminate", c.message)
		}
	}
}

// TestTerminateOfSetUp checks that a Terminate which comes right after the reply is read as one of the set-up, in both orders of
// bits (S3).
func TestTerminateOfSetUp(t *testing.T) {
	for _, c := range []struct {
		message []byte
		fault   ddp.Fault
		swapped bool
	}{
		{[]byte{0x02, 6, 0, 0}, ddp.NoReads, true}, // from siw
		{[]byte{0x02, 7, 0, 0}, ddp.NoReadyFrame, true},
		{[]byte{0x20, 6, 0, 0}, ddp.NoReads, false},
		{[]byte{0x20, 7, 0, 0}, ddp.NoReadyFrame, false},
	} {
		found := false
		eventsOf(t, iwarp.Options{}, said(request(0), reply(0), fpdu(ddp.Header{Last: true, Control: 0x47, QN: 2, MSN: 1}, c.message)), func(e *iwarp.Event) {
			if e.Terminate == nil {
				return
			}
			found = true
			if x := e.Terminate; x.Fault != c.fault || x.Swapped != c.swapped {
				t.Errorf("%x: %v, swapped %v", c.message, x.Fault, x.Swapped)
			}
		})
		if !found {
			t.Errorf("%x is no Terminate", c.message)
		}
	}
}

// TestErrorOfEmit: once its events are not wanted any more, a Decoder makes none.
func TestErrorOfEmit(t *testing.T) {
	enough := errors.New("enough")
	n := 0
	d := iwarp.New(iwarp.Options{}, func(*iwarp.Event) error { n++; return enough })
	records := records.Of(t, testdata+"ops-short.pcap")
	for i := range records {
		if err := d.Add(i+1, &records[i]); err != nil && !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	if err := d.End(); !errors.Is(err, enough) || n != 1 {
		t.Errorf("%v after %d events", err, n)
	}
}

// TestCutSetUp checks that set-up is read as far as a snap length left it, and that what the snap length took is told once (1).
func TestCutSetUp(t *testing.T) {
	const headers = 66 // of Ethernet, IP and TCP
	for _, c := range []struct {
		file  string
		there int // bytes of MPA that the snap length leaves
		words bool
		want  []string
	}{
		{"term-write-bounds", 30, true, []string{"setup", "setup", "frame", "frame"}},
		{"term-write-bounds", 24, true, []string{"setup", "setup", "frame", "frame"}},
		{"term-write-bounds", 23, false, []string{"setup", "setup", "frame", "frame"}},
		{"term-write-bounds", 20, false, []string{"setup", "setup", "frame", "frame"}},
		{"term-write-bounds", 19, false, nil}, // neither header is there
		{"write-65537-gso", 30, true, []string{"setup", "setup", "frame"}},
	} {
		records := records.Of(t, testdata+c.file+".pcap")
		for i := range records {
			r := &records[i]
			r.Data = r.Data[:min(len(r.Data), headers+c.there)]
		}
		var got []string
		eventsOf(t, iwarp.Options{}, records, func(e *iwarp.Event) {
			switch e.Kind {
			case iwarp.SetUp:
				got = append(got, "setup")
				if s := &e.SetUp; s.Rev != 2 || !s.CRC || s.Enhanced != c.words || e.Wrong != nil || e.Absent != 40-c.there ||
					c.words && (s.IRD != 4 || s.ORD != 4) || len(s.Private) != max(c.there-24, 0) {
					t.Errorf("%s cut to %d: %+v, %d absent, wrong %v", c.file, c.there, s, e.Absent, e.Wrong)
				}
			case iwarp.Frame:
				if len(got) < 4 {
					got = append(got, "frame")
				}
			case iwarp.Begins, iwarp.Missing, iwarp.Found, iwarp.GivenUp, iwarp.Lost:
				t.Errorf("%s cut to %d: %v %d %s", c.file, c.there, e.Kind, e.N, e.Why)
			}
		})
		if len(got) < len(c.want) || !slices.Equal(got[:len(c.want)], c.want) || c.want == nil && got != nil {
			t.Errorf("%s cut to %d: %q, want %q", c.file, c.there, got, c.want)
		}
	}
}
