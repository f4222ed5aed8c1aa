package iwarp_test

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/capture"
	"github.com/dgrdma/dgrdma/capture/records"
	"github.com/dgrdma/dgrdma/inspect/iwarp"
)

// FuzzDecoder: whatever records there are, in whatever order, there is an end, in time, and what is kept is bounded. The input is a program that
// takes records of real captures, cuts, moves, doubles and damages them, and makes others of bytes of its own.
func FuzzDecoder(f *testing.F) {
	var pool []capture.Record
	for _, name := range []string{"ops-short", "term-read-bounds", "rping-p2p-write-crc", "rev1-ops", "write-65537-gso", "reject-private-data"} {
		pool = append(pool, records.Of(f, testdata+name+".pcap")...)
	}
	all := make([]byte, 0, 2*len(pool))
	for i := range pool {
		all = append(all, 0, byte(i))
	}
	f.Add(all, uint16(0))
	f.Add(all[40:], uint16(1000))
	f.Add([]byte{1, 3, 9, 2, 8, 3, 5, 200, 4, 4, 0xc0, 0x40, 5, 5, 6, 6, 6}, uint16(7))
	f.Fuzz(func(t *testing.T, program []byte, port uint16) {
		o := iwarp.Options{}
		if port%8 == 7 {
			o.Ports = []uint16{7000, 7174, port}
		}
		begin := time.Now()
		events, n := 0, 0
		o.Failed = func(a iwarp.Attempt) {
			if a.SYNs < 1 || a.First.Record < 1 || a.First.Record > n || a.Refused.Record > n || len(o.Ports) == 0 && a.Named {
				t.Fatalf("%+v, of %d records", a, n)
			}
		}
		d := iwarp.New(o, func(e *iwarp.Event) error {
			events++
			if e.Conn.Number == 0 || e.N < 0 || e.Length < 0 || e.Absent < 0 || len(e.Payload) > 1<<16 {
				t.Fatalf("%+v", e)
			}
			if e.Last.Record != n && e.Late == "" {
				t.Fatalf("%+v is told with record %d", e, n)
			}
			return nil
		})
		for i := 0; i+1 < len(program) && i < 8<<10; i += 2 {
			do, arg := program[i], int(program[i+1])
			r := pool[(arg+int(do>>4)*256)%len(pool)]
			s, ok := r.Segment()
			if !ok {
				continue
			}
			switch do % 8 {
			case 1: // cut by a snap length
				r.Data = r.Data[:min(len(r.Data), 54+arg)]
			case 2: // a part of it
				if k := arg % (s.Length + 1); k <= len(s.Data) {
					s.Data, s.Length = s.Data[:k], k
					r = segmentLike(t, &r, &s)
				}
			case 3: // elsewhere
				s.Seq += uint32(arg-128) << (do >> 3 & 31)
				r = segmentLike(t, &r, &s)
			case 4: // damaged
				r = segmentLike(t, &r, &s)
				r.Data[arg*len(r.Data)/256] ^= do | 1
			case 5: // other bytes
				s.Data = program[i:min(len(program), i+arg*8)]
				s.Length = len(s.Data)
				r = segmentLike(t, &r, &s)
			case 6: // other flags, and what was heard
				s.Flags, s.Ack = byte(arg), s.Ack+uint32(do)<<12
				r = segmentLike(t, &r, &s)
			case 7: // no packet of anybody
				r = capture.Record{LinkType: int(do), Data: program[i:], Length: arg}
			}
			n++
			if err := d.Add(n, &r); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.End(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Fatalf("%d records took %v", n, took)
		}
		if events > 200*n+100 {
			t.Fatalf("%d events of %d records", events, n)
		}
	})
}

// flood are records of many connections that each keep as much waiting as they can.
func flood(n int, each func(r *capture.Record)) {
	parts := said(request(0x40), reply(0x40), append([]byte{0xff, 0xff}, make([]byte, 1000)...))
	for i := range n {
		for j := range parts {
			r := parts[j]
			r.Data = bytes.Clone(r.Data)
			r.Data[12+4*(j%2)], r.Data[13+4*(j%2)] = byte(i>>8), byte(i) // of the initiator, which sends every second one
			each(&r)
		}
	}
}

// TestMemoryIsBounded: of very many connections, most are let go of, and counted; what is kept is bounded.
func TestMemoryIsBounded(t *testing.T) {
	gone := 0
	d := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error {
		if e.Kind == iwarp.Gone && e.Why != "" {
			gone++
		}
		return nil
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	flood(20_000, func(r *capture.Record) {
		n++
		if err := d.Add(n, r); err != nil {
			t.Fatal(err)
		}
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	s := d.Stats()
	if s.Connections != 20_000 || s.Evicted < 18_000 || gone != s.Evicted {
		t.Errorf("%+v, %d gone", s, gone)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	runtime.KeepAlive(d)
}
