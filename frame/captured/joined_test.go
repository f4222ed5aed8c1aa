package captured

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

// withData is the prefix and a frame from 1 to 2 with one message of n bytes.
func withData(seq frame.Seq, n int) []byte {
	b := make([]byte, frame.PrefixSize+frame.HeaderSize+frame.MessageHeaderSize+n)
	h := frame.Header{Dst: 2, Src: 1, Seq: seq, Flags: frame.FlagMessages}
	h.Put(b[frame.PrefixSize:])
	var w frame.Writer
	w.Init(b[frame.PrefixSize:])
	data := w.Add(&frame.Message{Txn: 7, Count: 100, Index: 1, Addr: 0x1000, Len: uint16(n)})
	for i := range data {
		data[i] = byte(int(seq) + i)
	}
	return b
}

func plainAck(seq frame.Seq) []byte {
	b := make([]byte, frame.PrefixSize+frame.HeaderSize)
	h := frame.Header{Dst: 2, Src: 1, Seq: seq, AckStart: 9, AckCount: 3}
	h.Put(b[frame.PrefixSize:])
	return b
}

// introduction is a HELLO from 1 to 2 that lists services.
func introduction(t testing.TB, epoch uint32) []byte {
	b := withData(0, 0)
	(&frame.Handshake{Kind: frame.HandshakeHello, Sender: epoch}).Put(b[frame.PrefixSize:], 2, 1)
	var s frame.Services
	for i, name := range []string{"memory", "link"} {
		n, err := frame.ParseServiceName(name)
		if err != nil || !s.Add(frame.Service{Name: n, Base: uint32(i) << 16}) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	list := make([]byte, frame.ServicesSize)
	s.Put(list)
	return append(b, list...)
}

// between gives a copy of a datagram other endpoints.
func between(src, dst uint16, b []byte) []byte {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint16(b[frame.PrefixSize:], dst)
	binary.LittleEndian.PutUint16(b[frame.PrefixSize+2:], src)
	return b
}

func padded(b []byte, n int) []byte { return append(bytes.Clone(b), make([]byte, n)...) }

// checked gives each a checksum.
func checked(datagrams ...[]byte) (all [][]byte) {
	for _, b := range datagrams {
		all = append(all, append(b[:frame.PrefixSize:frame.PrefixSize], checkedFrame(b[frame.PrefixSize:])...))
	}
	return all
}

func TestJoinedDatagrams(t *testing.T) {
	var full, acks, some, sources, destinations, heard [][]byte
	for i := range frame.Seq(44) {
		full = append(full, withData(65530+i, 1432))
		acks = append(acks, plainAck(65530+i))
		some = append(some, padded(withData(i, 1429), 3))
		sources = append(sources, between(1+uint16(i)%4, 2, full[i]))
		destinations = append(destinations, between(1, 2+uint16(i)%4, full[i]))
		heard = append(heard, between(1, 2+uint16(i)%4, acks[i]))
	}
	hello := withData(7, 0)
	serves := introduction(t, 7)
	bare := serves[:len(hello)]
	for name, datagrams := range map[string][][]byte{
		"an introduction behind":    append(full[:20:20], serves),
		"introductions":             {serves, serves, serves},
		"a bare one behind two":     {serves, serves, bare},
		"bare introductions":        {bare, bare, plainAck(3)},
		"padded introductions":      {padded(serves, 3), padded(serves, 3), serves},
		"data behind introductions": {serves, serves, withData(9, 100)},
		"several introduced":        {serves, between(1, 3, serves), between(1, 4, serves)},
		"another introduced behind": append(full[:20:20], between(9, 2, serves)),
		"full frames":               full,
		"two":                       full[:2],
		"a shorter one behind":      append(full[:20:20], withData(9, 1431)),
		"a bare one behind":         append(full[:1:1], plainAck(9)),
		"acknowledgements":          acks,
		"without data":              {hello, hello, plainAck(3)},
		"padding behind the frames": some,
		"largest":                   {withData(1, 32000), withData(2, 32000)},
		"several sources":           sources,
		"several destinations":      destinations,
		"several to acknowledge":    heard,
		"another source behind":     append(full[:20:20], between(9, 2, plainAck(1))),
		"with checksums":            checked(full...),
		"checked introductions":     checked(serves, serves, bare),
		"bare ones to two":          {plainAck(5), between(1, 9, plainAck(5))},
	} {
		for wire, c := range capturetest.Joined(t, datagrams...) {
			for _, o := range []Options{{}, {Ports: []uint16{40002}}} {
				all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, c), o)
				want := capture.Stats{Records: 1, Packets: len(datagrams), Joined: 1}
				if err != nil || stats != want {
					t.Fatalf("%s, %s: %+v, %v; want %+v", name, wire, stats, err, want)
				}
				for i, p := range all {
					whole := append(bytes.Clone(p.Prefix), p.Data...)
					if !bytes.Equal(whole, datagrams[i]) || p.Cut() || p.Length != len(datagrams[i])-frame.PrefixSize {
						t.Fatalf("%s, %s: datagram %d is % x", name, wire, i, whole)
					}
					if p.Record != 1 || p.segment != fmt.Sprintf("%d/%d", i+1, len(datagrams)) || !p.Time.Equal(capturetest.Stamp) || p.dst == p.src {
						t.Errorf("%s, %s: %+v", name, wire, p)
					}
				}
			}
		}
	}
}

// What is not joined stays one frame, however long.
func TestNotJoined(t *testing.T) {
	first := withData(1, 100)
	foreign := between(4, 3, withData(2, 100))
	binary.LittleEndian.PutUint16(foreign, 3)
	noise := bytes.Repeat([]byte{0x5A}, len(first))
	broken := withData(2, 100)
	broken[frame.PrefixSize+frame.HeaderSize+20] = 101 // its data would reach past its end
	flags := withData(2, 100)
	flags[frame.PrefixSize+9] = 0x81
	third := withData(3, 100)
	otherSource, otherDestination := between(3, 2, third), between(1, 3, third)
	serves := introduction(t, 1)
	damaged := bytes.Clone(serves)
	damaged[len(damaged)-frame.ServicesSize+3] = 1
	for name, datagrams := range map[string][][]byte{
		"alone":               {first},
		"long":                {withData(1, 60000)},
		"link padding":        {padded(first, 40)},
		"noise behind":        {first, noise},
		"between others":      {first, foreign},
		"second broken":       {first, broken},
		"unknown flags":       {first, flags},
		"noise third":         {first, third, noise},
		"longer behind":       {first, withData(2, 101)},
		"too short behind":    {first, plainAck(2)[:11]},
		"gap":                 {padded(first, 8), third},
		"bare":                {plainAck(1)},
		"shorter in between":  {first, withData(2, 99), third},
		"a prefix of its own": {first, append([]byte{9, 9}, third[2:]...)},
		"introduction":        {serves},
		"damaged services":    {damaged},
		"damaged, and more":   {damaged, serves},

		// One end is the same for all, or nothing is known to be.
		"several, padded":          {padded(first, 1), padded(otherSource, 1)},
		"several, last padded":     {first, otherSource, padded(withData(4, 92), 1)},
		"several, first padded":    {padded(first, 1), between(3, 2, withData(2, 101))},
		"several, third broken":    {first, otherSource, broken},
		"several, third of nobody": {first, third, between(0, 2, third)},
		"both ends vary":           {first, otherSource, otherDestination},
		"ends turn round":          {first, between(2, 1, third)},
		"several, garbage behind":  {first, otherSource, noise[:40]},
		"several, services padded": {serves, between(3, 2, padded(serves[:len(serves)-frame.ServicesSize], 8))},
		"several, damaged behind":  {serves, between(3, 2, damaged)},
	} {
		for wire, c := range capturetest.Joined(t, datagrams...) {
			all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, c), Options{})
			if err != nil || stats != (capture.Stats{Records: 1, Packets: 1}) {
				t.Fatalf("%s, %s: %+v, %v", name, wire, stats, err)
			}
			if got, want := append(all[0].Prefix, all[0].Data...), bytes.Join(datagrams, nil); !bytes.Equal(got, want) || all[0].segment != "0/0" {
				t.Errorf("%s, %s: %d bytes, want %d; segment %s", name, wire, len(got), len(want), all[0].segment)
			}
		}
	}
}

// TestPlausibleAcks checks that a frame without messages is one only if it acknowledges, and nothing follows its header.
func TestPlausibleAcks(t *testing.T) {
	good := plainAck(9)
	bad := bytes.Clone(good)
	bad[frame.PrefixSize+8] = 0
	for _, tt := range []struct {
		name string
		data []byte
		want int
	}{{"good", good, 1}, {"of nothing", bad, 0}, {"short", good[:len(good)-1], 0}, {"long", padded(good, 1), 0}, {"with a checksum", checked(good)[0], 0}} {
		_, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, capturetest.Joined(t, tt.data)["IPv4"]), Options{})
		if err != nil || stats.Packets != tt.want || stats.Other != 1-tt.want {
			t.Errorf("%s: %+v, %v", tt.name, stats, err)
		}
	}
}

// Wherever a snap length cuts, what was captured is delivered, once.
func TestJoinedAndCut(t *testing.T) {
	serves := introduction(t, 7)
	for name, datagrams := range map[string][][]byte{
		"frames": {withData(1, 50), withData(2, 50), withData(3, 50), withData(4, 8)},
		"acks":   {plainAck(1), plainAck(2), plainAck(3), plainAck(4)},
		"several sources": {
			withData(1, 50), between(3, 2, withData(9, 50)), between(4, 2, withData(3, 50)), between(3, 2, withData(4, 8)),
		},
		"several to acknowledge":    {plainAck(1), between(1, 3, plainAck(2)), between(1, 4, plainAck(3)), plainAck(4)},
		"an introduction behind":    {withData(1, 150), withData(2, 150), withData(3, 150), serves},
		"introductions":             {serves, serves, serves, introduction(t, 8)},
		"several introduced":        {serves, between(1, 3, serves), between(1, 4, serves), serves},
		"another introduced behind": {withData(1, 150), withData(2, 150), withData(3, 150), between(3, 2, serves)},
	} {
		const headers = 20 + 8
		whole := capturetest.Joined(t, datagrams...)["IPv4"]
		size := len(datagrams[0])
		// From here on the second datagram, or the end of the first frame, is known.
		known := headers + frame.PrefixSize + frame.HeaderSize + min(frame.MessageHeaderSize, size-frame.PrefixSize-frame.HeaderSize)
		if bytes.Equal(datagrams[0], serves) {
			known = headers + size
		}
		for n := known; n < len(whole.Data); n++ {
			cut := capturetest.Packet{Link: 101, Data: whole.Data[:n], Length: len(whole.Data)}
			all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, false, cut), Options{})
			seen := (n - headers + size - 1) / size
			if err != nil || len(all) != seen || stats.Hidden != 4-seen || stats.Joined != 1 || stats.Cut > 1 {
				t.Fatalf("%s cut to %d: %d frames, %+v, %v", name, n, len(all), stats, err)
			}
			var got []byte
			for i, p := range all {
				got = append(append(got, p.Prefix...), p.Data...)
				if p.Length != len(datagrams[i])-frame.PrefixSize || p.Cut() != (len(p.Data) < p.Length) {
					t.Errorf("%s cut to %d: frame %d of %d bytes", name, n, i, p.Length)
				}
			}
			if !bytes.Equal(got, whole.Data[headers:n]) {
				t.Fatalf("%s cut to %d: %d bytes delivered", name, n, len(got))
			}
		}
	}
}

// What a frame says of its end need not be captured to be wrong.
func TestNotJoinedAndCut(t *testing.T) {
	broken := withData(3, 50)
	broken[frame.PrefixSize+frame.HeaderSize+20]++
	whole := capturetest.Joined(t, withData(1, 50), between(3, 2, withData(2, 50)), broken)["IPv4"]
	cut := capturetest.Packet{Link: 101, Data: whole.Data[:len(whole.Data)-1], Length: len(whole.Data)}
	_, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, false, cut), Options{})
	if want := (capture.Stats{Records: 1, Packets: 1, Cut: 1}); err != nil || stats != want {
		t.Errorf("%+v, %v; want %+v", stats, err, want)
	}
}

// An introduction that was cut within its services may have none: nobody knows where it
// ends.
func TestCutWithinServices(t *testing.T) {
	const headers = 20 + 8 + frame.PrefixSize + frame.HeaderSize + frame.MessageHeaderSize
	serves := introduction(t, 7)
	whole := capturetest.Joined(t, serves, serves)["IPv4"]
	for n := headers; n < headers+frame.ServicesSize; n++ {
		cut := capturetest.Packet{Link: 101, Data: whole.Data[:n], Length: len(whole.Data)}
		all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, false, cut), Options{})
		if want := (capture.Stats{Records: 1, Packets: 1, Cut: 1}); err != nil || stats != want || all[0].Length != 2*len(serves)-frame.PrefixSize {
			t.Fatalf("cut to %d: %+v, %v", n, stats, err)
		}
	}
}
