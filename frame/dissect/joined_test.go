package dissect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/gopacket"

	"github.com/dgrdma/dgrdma/frame"
)

// datagram is the prefix and a frame from 1 to 2 with one message of n bytes.
func datagram(seq frame.Seq, n int) []byte {
	b := make([]byte, PrefixSize+frame.HeaderSize+frame.MessageHeaderSize+n)
	h := frame.Header{Dst: 2, Src: 1, Seq: seq, Flags: frame.FlagMessages}
	h.Put(b[PrefixSize:])
	var w frame.Writer
	w.Init(b[PrefixSize:])
	data := w.Add(&frame.Message{Txn: 7, Count: 100, Index: 1, Addr: 0x1000, Len: uint16(n)})
	for i := range data {
		data[i] = byte(int(seq) + i)
	}
	return b
}

func stampedAck(seq frame.Seq) []byte {
	b := make([]byte, PrefixSize+frame.HeaderSize+frame.StampSize)
	h := frame.Header{Dst: 2, Src: 1, Seq: seq, AckStart: 9, AckCount: 3}
	h.Put(b[PrefixSize:])
	frame.Stamp{Life: 5, ID: 1<<16 | uint32(seq), Start: 9}.Put(b[PrefixSize+frame.HeaderSize:])
	return b
}

func plainAck(seq frame.Seq) []byte {
	return stampedAck(seq)[:PrefixSize+frame.HeaderSize]
}

// between gives a copy of a datagram other endpoints.
func between(src, dst uint16, b []byte) []byte {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint16(b[PrefixSize:], dst)
	binary.LittleEndian.PutUint16(b[PrefixSize+2:], src)
	return b
}

// overIP joins datagrams as a host with offload shows them.
func overIP(t testing.TB, datagrams ...[]byte) map[string]captured {
	payload := gopacket.Payload(bytes.Join(datagrams, nil))
	ip4 := serialize(t, ipv4(), udp(), payload)
	unsaid := bytes.Clone(ip4) // the sender's own capture, lengths left to the device
	binary.BigEndian.PutUint16(unsaid[2:], 0)
	binary.BigEndian.PutUint16(unsaid[24:], 0)
	return map[string]captured{
		"IPv4":   {101, ip4, 0},
		"unsaid": {101, unsaid, 0},
		"IPv6":   {101, serialize(t, ipv6(), udp(), payload), 0},
	}
}

func padded(b []byte, n int) []byte { return append(bytes.Clone(b), make([]byte, n)...) }

func TestJoinedDatagrams(t *testing.T) {
	var full, acks, plain, some, sources, destinations, heard [][]byte
	for i := range frame.Seq(44) {
		full = append(full, datagram(65530+i, 1432))
		acks = append(acks, stampedAck(65530+i))
		plain = append(plain, plainAck(65530+i))
		some = append(some, padded(datagram(i, 1429), 3))
		sources = append(sources, between(1+uint16(i)%4, 2, full[i]))
		destinations = append(destinations, between(1, 2+uint16(i)%4, full[i]))
		heard = append(heard, between(1, 2+uint16(i)%4, acks[i]))
	}
	hello := datagram(7, 0)
	for name, datagrams := range map[string][][]byte{
		"full frames":               full,
		"two":                       full[:2],
		"a shorter one behind":      append(full[:20:20], datagram(9, 1431)),
		"an acknowledgement behind": append(full[:20:20], stampedAck(9)),
		"a bare one behind":         append(full[:1:1], plainAck(9)),
		"acknowledgements":          acks,
		"bare acknowledgements":     plain,
		"a bare one behind stamps":  append(acks[:5:5], plainAck(1)),
		"without data":              {hello, hello, stampedAck(3)},
		"padding behind the frames": some,
		"largest":                   {datagram(1, 32000), datagram(2, 32000)},
		"several sources":           sources,
		"several destinations":      destinations,
		"several to acknowledge":    heard,
		"another source behind":     append(full[:20:20], between(9, 2, stampedAck(1))),
		"bare ones to two":          {plainAck(5), between(1, 9, plainAck(5))},
	} {
		for wire, c := range overIP(t, datagrams...) {
			for _, o := range []Options{{}, {Ports: []uint16{40002}}} {
				all, stats, err := readAll(pcapFile(binary.LittleEndian, true, c), o)
				want := Stats{Records: 1, Frames: len(datagrams), Joined: 1}
				if err != nil || stats != want {
					t.Fatalf("%s, %s: %+v, %v; want %+v", name, wire, stats, err, want)
				}
				for i, p := range all {
					whole := append(bytes.Clone(p.prefix), p.data...)
					if !bytes.Equal(whole, datagrams[i]) || p.cut || p.wireBytes != len(datagrams[i])-PrefixSize {
						t.Fatalf("%s, %s: datagram %d is % x", name, wire, i, whole)
					}
					if p.record != 1 || p.segment != fmt.Sprintf("%d/%d", i+1, len(datagrams)) || !p.time.Equal(stamp) || p.dst == p.src {
						t.Errorf("%s, %s: %+v", name, wire, p)
					}
				}
			}
		}
	}
}

// What is not joined stays one frame, however long.
func TestNotJoined(t *testing.T) {
	first := datagram(1, 100)
	foreign := between(4, 3, datagram(2, 100))
	binary.LittleEndian.PutUint16(foreign, 3)
	noise := bytes.Repeat([]byte{0x5A}, len(first))
	broken := datagram(2, 100)
	broken[PrefixSize+frame.HeaderSize+20] = 101 // its data would reach past its end
	flags := datagram(2, 100)
	flags[PrefixSize+9] = 0x81
	third := datagram(3, 100)
	otherSource, otherDestination := between(3, 2, third), between(1, 3, third)
	for name, datagrams := range map[string][][]byte{
		"alone":               {first},
		"long":                {datagram(1, 60000)},
		"link padding":        {padded(first, 40)},
		"noise behind":        {first, noise},
		"between others":      {first, foreign},
		"second broken":       {first, broken},
		"unknown flags":       {first, flags},
		"noise third":         {first, third, noise},
		"longer behind":       {first, datagram(2, 101)},
		"too short behind":    {first, plainAck(2)[:11]},
		"gap":                 {padded(first, 8), third},
		"stamp":               {stampedAck(1)},
		"bare":                {plainAck(1)},
		"shorter in between":  {first, datagram(2, 99), third},
		"a prefix of its own": {first, append([]byte{9, 9}, third[2:]...)},

		// One end is the same for all, or nothing is known to be.
		"several, padded":          {padded(first, 1), padded(otherSource, 1)},
		"several, last padded":     {first, otherSource, padded(datagram(4, 92), 1)},
		"several, first padded":    {padded(first, 1), between(3, 2, datagram(2, 101))},
		"several, third broken":    {first, otherSource, broken},
		"several, third of nobody": {first, third, between(0, 2, third)},
		"both ends vary":           {first, otherSource, otherDestination},
		"ends turn round":          {first, between(2, 1, third)},
		"several, garbage behind":  {first, otherSource, noise[:40]},
	} {
		for wire, c := range overIP(t, datagrams...) {
			all, stats, err := readAll(pcapFile(binary.LittleEndian, true, c), Options{})
			if err != nil || stats != (Stats{Records: 1, Frames: 1}) {
				t.Fatalf("%s, %s: %+v, %v", name, wire, stats, err)
			}
			if got, want := append(all[0].prefix, all[0].data...), bytes.Join(datagrams, nil); !bytes.Equal(got, want) || all[0].segment != "0/0" {
				t.Errorf("%s, %s: %d bytes, want %d; segment %s", name, wire, len(got), len(want), all[0].segment)
			}
		}
	}
}

// A stamp that does not fit its frame is no sign of one.
func TestPlausibleStamps(t *testing.T) {
	good := stampedAck(9)
	bad := bytes.Clone(good)
	bad[PrefixSize+frame.HeaderSize+4]++
	for _, tt := range []struct {
		name string
		data []byte
		want int
	}{{"good", good, 1}, {"bad", bad, 0}, {"short", good[:len(good)-1], 0}, {"long", padded(good, 1), 0}} {
		_, stats, err := readAll(pcapFile(binary.LittleEndian, true, overIP(t, tt.data)["IPv4"]), Options{})
		if err != nil || stats.Frames != tt.want || stats.Other != 1-tt.want {
			t.Errorf("%s: %+v, %v", tt.name, stats, err)
		}
	}
}

// Wherever a snap length cuts, what was captured is delivered, once.
func TestJoinedAndCut(t *testing.T) {
	for name, datagrams := range map[string][][]byte{
		"frames": {datagram(1, 50), datagram(2, 50), datagram(3, 50), datagram(4, 8)},
		"acks":   {stampedAck(1), stampedAck(2), stampedAck(3), stampedAck(4)},
		"several sources": {
			datagram(1, 50), between(3, 2, datagram(9, 50)), between(4, 2, datagram(3, 50)), between(3, 2, datagram(4, 8)),
		},
		"several to acknowledge": {stampedAck(1), between(1, 3, stampedAck(2)), between(1, 4, stampedAck(3)), stampedAck(4)},
	} {
		const headers = 20 + 8
		whole := overIP(t, datagrams...)["IPv4"]
		size := len(datagrams[0])
		// From here on the second datagram, or the end of the first frame, is known.
		known := headers + PrefixSize + frame.HeaderSize + min(frame.MessageHeaderSize, size-PrefixSize-frame.HeaderSize)
		for n := known; n < len(whole.data); n++ {
			cut := captured{101, whole.data[:n], len(whole.data)}
			all, stats, err := readAll(pcapFile(binary.LittleEndian, false, cut), Options{})
			seen := (n - headers + size - 1) / size
			if err != nil || len(all) != seen || stats.Hidden != 4-seen || stats.Joined != 1 || stats.Cut > 1 {
				t.Fatalf("%s cut to %d: %d frames, %+v, %v", name, n, len(all), stats, err)
			}
			var got []byte
			for i, p := range all {
				got = append(append(got, p.prefix...), p.data...)
				if p.wireBytes != len(datagrams[i])-PrefixSize || p.cut != (len(p.data) < p.wireBytes) {
					t.Errorf("%s cut to %d: frame %d of %d bytes", name, n, i, p.wireBytes)
				}
			}
			if !bytes.Equal(got, whole.data[headers:n]) {
				t.Fatalf("%s cut to %d: %d bytes delivered", name, n, len(got))
			}
		}
	}
}

// What a frame says of its end need not be captured to be wrong.
func TestNotJoinedAndCut(t *testing.T) {
	broken := datagram(3, 50)
	broken[PrefixSize+frame.HeaderSize+20]++
	whole := overIP(t, datagram(1, 50), between(3, 2, datagram(2, 50)), broken)["IPv4"]
	cut := captured{101, whole.data[:len(whole.data)-1], len(whole.data)}
	_, stats, err := readAll(pcapFile(binary.LittleEndian, false, cut), Options{})
	if want := (Stats{Records: 1, Frames: 1, Cut: 1}); err != nil || stats != want {
		t.Errorf("%+v, %v; want %+v", stats, err, want)
	}
}

// sliceSource yields packets that are in no file.
type sliceSource struct {
	packets []captured
	end     error
}

func (s *sliceSource) Next() (Record, error) {
	if len(s.packets) == 0 {
		return Record{}, s.end
	}
	p := s.packets[0]
	s.packets = s.packets[1:]
	return Record{Time: stamp, Interface: 4, LinkType: p.link, Data: p.data, Length: int(p.wire())}, nil
}

func TestSource(t *testing.T) {
	end := fmt.Errorf("unplugged")
	src := &sliceSource{[]captured{wrapped(t)["ethernet"], {1, make([]byte, 60), 0}, overIP(t, datagram(1, 9), datagram(2, 9))["IPv6"]}, end}
	r := NewSourceReader(src, Options{})
	var lengths []int
	for {
		p, err := r.Next()
		if err != nil {
			if err != end {
				t.Errorf("error %v", err)
			}
			break
		}
		if !p.Time.Equal(stamp) || p.Interface != 4 {
			t.Errorf("%+v", p)
		}
		lengths = append(lengths, p.Length)
	}
	if fmt.Sprint(lengths) != "[69 43 43]" || r.Stats() != (Stats{Records: 3, Frames: 3, Joined: 1, Other: 1}) {
		t.Errorf("lengths %v, %+v", lengths, r.Stats())
	}
}
