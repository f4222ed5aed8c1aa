package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/seal"
)

// sealedCapture is a handshake and two sealed frames.
func sealedCapture(t *testing.T) []byte {
	r := capturetest.Sealed(t, 1, 2)
	var all []capturetest.Packet
	for _, b := range [][]byte{r.Question, r.Challenge, r.First, r.Second, r.There(seal.Salt{1}, 100), r.Back(seal.Salt{2}, 60)} {
		all = append(all, capturetest.Of(1, append([]byte{2, 0, 0, 0, 0, b[0], 2, 0, 0, 0, 0, b[2], 0xF0, 0x42}, b...)))
	}
	return capturetest.Pcap(binary.LittleEndian, false, all...)
}

// TestDecodeSealed: what is sealed is shown, and fits no filter for what it may carry, which is said where nothing else was there.
func TestDecodeSealed(t *testing.T) {
	file := sealedCapture(t)
	const why = "sealed frames: 2, which no --txn or --range fits: what they write cannot be seen\n"
	for _, c := range []struct {
		args  string
		lines int
		why   string
	}{
		{"-", 6, ""}, {"--id 2 -", 6, ""}, {"--id 3 -", 0, ""}, {"--txn 1 -", 0, why}, {"--range 0-0xffffffff -", 0, why}, {"--id 1 --txn 7 -", 0, why},
	} {
		code, stdout, stderr := runDecode(t, bytes.NewReader(file), strings.Fields(c.args)...)
		if code != exitOK || strings.Count(stdout, "\n") != c.lines || !strings.HasSuffix(stderr, c.why) || strings.Contains(stderr, "sealed") != (c.why != "") {
			t.Errorf("%s: code %d, %q, %q", c.args, code, stdout, stderr)
		}
		if sealed := strings.Count(stdout, "->") - strings.Count(stdout, " handshake "); c.lines > 0 && sealed != 2 {
			t.Errorf("%s: %d sealed frames in %q", c.args, sealed, stdout)
		}
	}
}
