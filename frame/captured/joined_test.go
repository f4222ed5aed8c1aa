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

func stampedAck(seq frame.Seq) []byte {
	b := make([]byte, frame.PrefixSize+frame.HeaderSize+frame.StampSize)
	h := frame.Header{Dst: 2, Src: 1, Seq: seq, AckStart: 9, AckCount: 3}
	h.Put(b[frame.PrefixSize:])
	frame.Stamp{Life: 5, ID: 1<<16 | uint32(seq), Start: 9}.Put(b[frame.PrefixSize+frame.HeaderSize:])
	return b
}

func plainAck(seq frame.Seq) []byte {
	return stampedAck(seq)[:frame.PrefixSize+frame.HeaderSize]
}

// introduction is a hello from 1 to 2 that lists services.
func introduction(t testing.TB, seq frame.Seq) []byte {
	b := withData(seq, 0)
	m := frame.Hello{Life: 5}.Message()
	m.Put(b[frame.PrefixSize+frame.HeaderSize:])
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

// sizeProbe is an introduction, to a life that it knows, that asks whether frames of that length arrive.
func sizeProbe(t testing.TB, seq frame.Seq, size int) []byte {
	b := introduction(t, seq)
	m := frame.Hello{Life: 5, Peer: 6}.Message()
	m.Put(b[frame.PrefixSize+frame.HeaderSize:])
	at := len(b)
	b = append(b, make([]byte, size+frame.PrefixSize-at)...)
	frame.SizeProbe{Size: size}.Put(b[at:])
	return b
}

// TestCutAcknowledgements checks that acknowledgements that were joined are taken apart where a snap length leaves nothing of the first
// but its header.
func TestCutAcknowledgements(t *testing.T) {
	for _, checksum := range []bool{false, true} {
		var acks [][]byte
		for i := range frame.Seq(5) {
			acks = append(acks, stampedAck(10+i))
		}
		if checksum {
			acks = checked(acks...)
		}
		for wire, c := range capturetest.Joined(t, acks...) {
			for _, there := range []int{10, 16, 21} { // of the first
				cut := c
				cut.Length = len(c.Data)
				cut.Data = c.Data[:len(c.Data)-5*len(acks[0])+frame.PrefixSize+there]
				all, stats, err := readAll(capturetest.Pcap(binary.LittleEndian, true, cut), Options{})
				if err != nil || len(all) != 1 || stats.Hidden != 4 || all[0].Length != len(acks[0])-frame.PrefixSize || len(all[0].Data) != there {
					t.Errorf("checksum %v, %s, %d bytes: %+v, %v", checksum, wire, there, stats, err)
				}
			}
		}
	}
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
	var full, acks, plain, some, sources, destinations, heard [][]byte
	for i := range frame.Seq(44) {
		full = append(full, withData(65530+i, 1432))
		acks = append(acks, stampedAck(65530+i))
		plain = append(plain, plainAck(65530+i))
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
		"bare introductions":        {bare, bare, stampedAck(3)},
		"padded introductions":      {padded(serves, 3), padded(serves, 3), serves},
		"data behind introductions": {serves, serves, withData(9, 100)},
		"asks for a length before":  {sizeProbe(t, 7, 1466), withData(8, 1432), withData(9, 100)},
		"asks for lengths":          {sizeProbe(t, 7, 1472), sizeProbe(t, 8, 1472), serves},
		"checked, asks before":      checked(sizeProbe(t, 7, 1466), withData(8, 1432), stampedAck(9)),
		"several introduced":        {serves, between(1, 3, serves), between(1, 4, serves)},
		"another introduced behind": append(full[:20:20], between(9, 2, serves)),
		"full frames":               full,
		"two":                       full[:2],
		"a shorter one behind":      append(full[:20:20], withData(9, 1431)),
		"an acknowledgement behind": append(full[:20:20], stampedAck(9)),
		"a bare one behind":         append(full[:1:1], plainAck(9)),
		"acknowledgements":          acks,
		"bare acknowledgements":     plain,
		"a bare one behind stamps":  append(acks[:5:5], plainAck(1)),
		"without data":              {hello, hello, stampedAck(3)},
		"padding behind the frames": some,
		"largest":                   {withData(1, 32000), withData(2, 32000)},
		"several sources":           sources,
		"several destinations":      destinations,
		"several to acknowledge":    heard,
		"another source behind":     append(full[:20:20], between(9, 2, stampedAck(1))),
		"with checksums":            checked(full...),
		"checked acknowledgements":  checked(acks...),
		"checked introductions":     checked(serves, serves, bare),
		"checked without data":      checked(hello, hello, stampedAck(3)),
		"checked several to hear":   checked(heard...),
		"a checked one behind":      checked(append(full[:20:20], stampedAck(9))...),
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
		"stamp":               {stampedAck(1)},
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

// A stamp that does not fit its frame is no sign of one.
func TestPlausibleStamps(t *testing.T) {
	good := stampedAck(9)
	bad := bytes.Clone(good)
	bad[frame.PrefixSize+frame.HeaderSize+4]++
	for _, tt := range []struct {
		name string
		data []byte
		want int
	}{{"good", good, 1}, {"bad", bad, 0}, {"short", good[:len(good)-1], 0}, {"long", padded(good, 1), 0}} {
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
		"acks":   {stampedAck(1), stampedAck(2), stampedAck(3), stampedAck(4)},
		"several sources": {
			withData(1, 50), between(3, 2, withData(9, 50)), between(4, 2, withData(3, 50)), between(3, 2, withData(4, 8)),
		},
		"several to acknowledge":    {stampedAck(1), between(1, 3, stampedAck(2)), between(1, 4, stampedAck(3)), stampedAck(4)},
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
