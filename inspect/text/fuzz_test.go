package text_test

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect/text"
	"github.com/dgrdma/dgrdma/seal/datagram"
)

// FuzzPrinter: whatever was captured, a line is one line, and JSON is one object
// that says what is in the frame.
func FuzzPrinter(f *testing.F) {
	two := services(f, "memory", "link")
	for _, p := range append(odd(), *introduction(two, 0), *introduction(append(two, 9), 3), *introduction(damaged(two), 0), *introduction(two[:50], 50)) {
		f.Add(p.Data, p.Length, len(p.Prefix), p.Record, p.Segment, p.Time.Unix(), "file")
	}
	for i, p := range sealedPackets(f) {
		f.Add(p.Data, p.Length, len(p.Prefix), p.Record, i, p.Time.Unix(), "file")
		f.Add(p.Data[:12], p.Length, len(p.Prefix), p.Record, i, p.Time.Unix(), "file")
	}
	for _, checks := range []bool{false, true} {
		for i, p := range sessionPackets(checks) {
			f.Add(p.Data, p.Length, i%4, p.Record, 0, p.Time.Unix(), "file")
			f.Add(p.Data[:20], p.Length, i%4, p.Record, 0, p.Time.Unix(), "file")
		}
	}
	for i, b := range handshakes(f) {
		f.Add(b, len(b), i%4, i, 0, int64(i), "file")
	}
	f.Fuzz(func(t *testing.T, data []byte, length, prefix, record, segment int, nanos int64, file string) {
		if len(data) > 1<<12 || len(file) > 1<<8 {
			return
		}
		k := captured.Packet{Packet: capture.Packet{
			Record: record, Name: file, Interface: 7, Segment: segment, Segments: segment, Data: data, Length: max(length, len(data)), Time: time.Unix(nanos, nanos/3),
			Src: capture.Addr{UDP: netip.AddrPortFrom(netip.AddrFrom4([4]byte{1, 2, 3, 4}), uint16(length))},
		}}
		if prefix > 0 {
			k.Prefix = data[:min(len(data), 2)]
		}
		if prefix > 2 {
			k.Src = capture.Addr{MAC: [6]byte{5: byte(prefix)}}
		}
		var v text.View
		v.Decode(&k)
		content, sum := k.Whole()
		whole, err := frame.Parse(content)
		messages := whole.Messages()
		if k.Session() {
			var f frame.SessionFrame
			f, err = frame.ParseSession(content)
			messages = f.Messages()
		}
		if (err == nil || k.Cut()) == (v.Malformed != nil) && !k.Cut() {
			t.Fatalf("malformed: %v, Parse says %v", v.Malformed, err)
		}
		if err == nil && len(v.Messages) != messages {
			t.Fatalf("%d messages of %d", len(v.Messages), messages)
		}
		for _, bytes := range []bool{false, true} {
			p := text.Printer{Style: text.JSON, Bytes: bytes, File: file}
			o := objectOf(t, string(p.Append(nil, &v)))
			if o.Record != record || len(o.Messages) != len(v.Messages) || o.Captured != len(data) || o.Cut != k.Cut() || (o.Malformed != nil) != (v.Malformed != nil) {
				t.Fatalf("%+v", o)
			}
			if want := string([]rune(file)); file != "" && (o.File == nil || *o.File != want) {
				t.Fatalf("file %q is %v", file, o.File)
			}
			if want := string([]rune(file)); o.InterfaceName != want { // for each byte that is no text, a sign of its own
				t.Fatalf("interface %q, not %q", o.InterfaceName, want)
			}
			if o.Time != nil && (o.Time.UnixNano() != k.Time.UnixNano() || o.Time.Unix() != k.Time.Unix()) {
				t.Fatalf("%v, not %v", o.Time, k.Time)
			}
			if o.Src != nil && (*o.Dst != int(data[0])|int(data[1])<<8 || *o.Flags != int(data[9])) {
				t.Fatalf("%+v of % x", o, data)
			}
			shake := v.Shake.Kind != frame.NoHandshake
			if sealed := o.Sealed != nil || o.Handshake != nil; sealed != (k.Seal() != datagram.Plain) || !k.Session() && !shake && sealed == (o.ID != nil) && o.Kind != "none" ||
				o.Sealed != nil && (o.Kind != "sealed" || o.Sealed.Counter != datagram.Counter(data) || o.Sealed.Length != k.Length-29) {
				t.Fatalf("%+v of % x", o, data)
			}
			if (k.Session() || shake) != (o.Session != nil) && o.Kind != "none" || o.ID != nil && k.Session() && *o.ID != int(binary.LittleEndian.Uint32(data[4:])) {
				t.Fatalf("%+v of % x", o, data)
			}
			if o.ID != nil && !k.Session() && (*o.ID != int(data[4])|int(data[5])<<8) {
				t.Fatalf("%+v of % x", o, data)
			}
			if said := o.ChecksumRight; (said != nil) != (sum != frame.NoChecksum) || said != nil && *said != (sum == frame.RightChecksum) {
				t.Fatalf("checksum %d: %v", sum, said)
			}
			list, told := whole.Services()
			if said := o.Session != nil && o.Session.Services != nil; said != told || said && len(*o.Session.Services) != len(list.All()) {
				t.Fatalf("services %v: %+v", list.String(), o.Session)
			}
			p.Style, p.File, p.Interfaces = text.Line, "", true
			if line := string(p.Append(nil, &v)); strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
				t.Fatalf("not one line: %q", line)
			}
			p.Style = text.Fields
			if got := string(p.Append(nil, &v)); strings.Count(got, "\n  message at byte") != len(v.Messages) || strings.Contains(got, "malformed") != (v.Malformed != nil) {
				t.Fatalf("fields of %d messages: %s", len(v.Messages), got)
			}
		}
	})
}
