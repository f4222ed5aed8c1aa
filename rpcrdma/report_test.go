package rpcrdma

import "testing"

// TestErrorsAreNotAnswered checks that whatever is wrong with an ERROR has no answer, an unknown code included
// (RPC2-081, 082), and that those without fault say what they say.
// Attack P11 (SECURITY.md).
func TestErrorsAreNotAnswered(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		d := NewDecoder(DefaultLimits())
		for _, body := range [][]uint32{{}, {0}, {3, 0}, {11, 0, 0}, {99}, {101}, {1 << 31}, {2, 0}, {1, 0}, {1}, {1, 1, 1, 1, 1}} {
			if f := refused(t, d, wire(join(prefix(version, TypeError, FlagResponse), body)...)); !f.Dropped() {
				t.Errorf("version %d, %d: %v", version, body, f)
			}
		}
		for c, s := range reportShapes[version] {
			n := reportSize(version, c)/wordSize - 1
			for extra := -n; extra <= 1; extra++ {
				b := wire(join(prefix(version, TypeError, FlagResponse), []uint32{uint32(c)}, make([]uint32, n+extra))...)
				if version == Version1 && len(b) < 20 {
					continue
				}
				if extra == 0 {
					if h, _ := taken(t, d, b); h.Report.Code != c {
						t.Errorf("%s: %+v", s.name, h.Report)
					}
				} else if f := refused(t, d, b); !f.Dropped() {
					t.Errorf("%s with %d words more: %v", s.name, extra, f)
				}
			}
		}
	}
}

// TestShortErrors checks what is said of an ERROR that is cut, or has a code that is not known.
func TestShortErrors(t *testing.T) {
	for _, version := range []uint32{Version1, Version2} {
		d := settled(version)
		code := map[uint32]ErrorCode{Version1: CodeVers, Version2: CodeSegments}[version]
		for _, c := range []struct {
			body   []uint32
			reason string
			at     int // words after the prefix
		}{
			{nil, "the message ends before its code", 0},
			{[]uint32{99}, "the code is unknown", 1},
			{[]uint32{uint32(code)}, "the message ends before what its code announces", 1},
		} {
			b := wire(join(prefix(version, TypeError, FlagResponse), c.body)...)
			f := refused(t, d, b)
			if want := len(b) - wordSize*(len(c.body)-c.at); f.Reason != c.reason || f.At != want || !f.Dropped() {
				t.Errorf("version %d, %d: %q at %d, want %q at %d", version, c.body, f.Reason, f.At, c.reason, want)
			}
		}
	}
}

// TestCodeNames checks that a code is named as its version does.
func TestCodeNames(t *testing.T) {
	for _, c := range []struct {
		code    ErrorCode
		version uint32
		want    string
	}{{2, 1, "ERR_CHUNK"}, {2, 2, "BAD_XDR"}, {100, 2, "SYSTEM"}, {100, 1, "error 100"}, {1, 0, "error 1"}, {1, 3, "error 1"}} {
		if got := c.code.Name(c.version); got != c.want {
			t.Errorf("code %d of version %d is %s, want %s", c.code, c.version, got, c.want)
		}
	}
}
