package rpcrdma

import "testing"

// TestLimits checks that what is beyond the limits is refused as each version says it (RPC2-077, 085 to 087), and what is at
// them is taken.
func TestLimits(t *testing.T) {
	if DefaultLimits() != (Limits{256, 16, 16}) {
		t.Errorf("%+v", DefaultLimits())
	}
	const one, more = 3, 2
	for _, version := range []uint32{Version1, Version2} {
		reads := func(chunks, segments int) (list []uint32) {
			for i := range chunks {
				for range segments {
					list = append(list, 1, uint32(4+i*4000), 9, 1, 0, 0)
				}
			}
			return append(list, 0)
		}
		writes := func(chunks, segments int) (list []uint32) {
			for range chunks {
				list = append(list, 1, uint32(segments))
				list = append(list, make([]uint32, 4*segments)...)
			}
			return append(list, 0)
		}
		reply := func(segments int) []uint32 {
			return append([]uint32{1, uint32(segments)}, make([]uint32, 4*segments)...)
		}
		none := Limits{}
		small := Limits{Segments: 10, ReadChunks: one, WriteChunks: more}
		wide := Limits{Segments: 1 << 20, ReadChunks: 1 << 20, WriteChunks: 1 << 20}
		full := DefaultLimits()
		for _, c := range []struct {
			name  string
			limit Limits
			lists []uint32
			want  string // of version 2
			max   uint32
		}{
			{"at the default", full, join(reads(16, 16), writes(0, 0), []uint32{0}), "", 0},
			{"Write chunks at the default", full, join(reads(0, 0), writes(16, 16), []uint32{0}), "", 0},
			{"a Reply chunk at the default", full, join(reads(0, 0), writes(0, 0), reply(256)), "", 0},
			{"17 Read chunks", full, join(reads(17, 1), writes(0, 0), []uint32{0}), "READ_CHUNKS", 16},
			{"17 Write chunks", full, join(reads(0, 0), writes(17, 0), []uint32{0}), "WRITE_CHUNKS", 16},
			{"257 Read segments", full, join(reads(1, 257), writes(0, 0), []uint32{0}), "SEGMENTS", 256},
			{"10,000 Read segments", full, join(reads(1, 10000), writes(0, 0), []uint32{0}), "SEGMENTS", 256},
			{"10,000 Read chunks", full, join(reads(10000, 1), writes(0, 0), []uint32{0}), "READ_CHUNKS", 16},
			{"10,000 Write segments", full, join(reads(0, 0), writes(1, 10000), []uint32{0}), "SEGMENTS", 256},
			{"10,000 in the Reply chunk", full, join(reads(0, 0), writes(0, 0), reply(10000)), "SEGMENTS", 256},
			{"257 in all", full, join(reads(8, 16), writes(8, 16), reply(1)), "SEGMENTS", 256},
			{"limits beyond what there is room for", wide, join(reads(0, 0), writes(0, 0), reply(257)), "SEGMENTS", 256},
			{"of one Read chunk", wide, join(reads(1, 257), writes(0, 0), reply(0)), "SEGMENTS", 256},
			{"and for Read chunks", wide, join(reads(17, 1), writes(0, 0), reply(0)), "READ_CHUNKS", 16},
			{"and for Write chunks", wide, join(reads(0, 0), writes(17, 1), reply(0)), "WRITE_CHUNKS", 16},
			{"at low limits", small, join(reads(3, 1), writes(2, 2), reply(3)), "", 0},
			{"a Read chunk above", small, join(reads(4, 1), writes(0, 0), []uint32{0}), "READ_CHUNKS", one},
			{"a Write chunk above", small, join(reads(0, 0), writes(3, 1), []uint32{0}), "WRITE_CHUNKS", more},
			{"a segment above", small, join(reads(3, 1), writes(2, 2), reply(4)), "SEGMENTS", 10},
			{"no Read chunks", none, join(reads(1, 1), writes(0, 0), []uint32{0}), "READ_CHUNKS", 0},
			{"no Write chunks", none, join(reads(0, 0), writes(1, 0), []uint32{0}), "WRITE_CHUNKS", 0},
			{"no lists", none, join(reads(0, 0), writes(0, 0), []uint32{0}), "", 0},
			{"below none", Limits{-1, -1, -1}, join(reads(0, 0), writes(0, 0), reply(1)), "SEGMENTS", 0},
		} {
			b := wire(join(prefix(version, TypeMsg, 0), handle(version, 0), c.lists)...)
			if c.want == "" {
				taken(t, NewDecoder(c.limit), b)
				continue
			}
			f := refused(t, NewDecoder(c.limit), b)
			want, most := c.want, c.max
			if version == Version1 {
				want, most = "ERR_CHUNK", 0
			}
			if code(f) != want || f.Report.Max != most || f.EitherSide() || f.At >= len(b) {
				t.Errorf("version %d, %s: %v, at most %d", version, c.name, f, f.Report.Max)
			}
			if at := shapes[version].prefix + wordSize*(len(handle(version, 0))+3); c.name == "10,000 in the Reply chunk" && f.At != at {
				t.Errorf("version %d, %s: %v, want it at octet %d", version, c.name, f, at)
			}
		}
	}
}
