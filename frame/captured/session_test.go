package captured

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
)

// TestSessionFrames checks that frames of a session of each kind, with a checksum or without, are found on each wire,
// and that their messages are found after their longer header.
func TestSessionFrames(t *testing.T) {
	for _, checks := range []bool{false, true} {
		for _, s := range capturetest.Sessions(checks) {
			for wire, c := range capturetest.Wrapped(t, s.Data) {
				all, _, err := readAll(capturetest.Ng(binary.LittleEndian, c), Options{})
				if err != nil || len(all) != 1 {
					t.Errorf("%s, checksum %v, %s: %d frames, %v", s.Name, checks, wire, len(all), err)
					continue
				}
				p := &all[0]
				h, ok := p.SessionHeader()
				b, _ := p.Whole()
				f, err := frame.ParseSession(b[:min(len(b), len(s.Data))])
				if !ok || err != nil || h != f.SessionHeader || h.Checks != checks {
					t.Errorf("%s, checksum %v, %s: %+v, %v, want %+v, %v", s.Name, checks, wire, h, ok, f.SessionHeader, err)
				}
				n := 0
				for m, data := range p.Messages() {
					if n++; m.Txn != 7 || string(data) != "thirteen long" {
						t.Errorf("%s, checksum %v, %s: %v, %q", s.Name, checks, wire, m, data)
					}
				}
				if n != f.Messages() {
					t.Errorf("%s, checksum %v, %s: %d messages of %d", s.Name, checks, wire, n, f.Messages())
				}
			}
		}
	}
}

// TestCutSessionFrames checks that frames of a session that a snap length cut are taken for such however short they are, and
// are looked into without harm.
func TestCutSessionFrames(t *testing.T) {
	for _, checks := range []bool{false, true} {
		for _, s := range capturetest.Sessions(checks) {
			for n := range s.Data {
				p := ofFrame(s.Data[:n:n], len(s.Data))
				p.Prefix = []byte{2, 0}
				if got := plausible(&p); got != (n >= frame.SessionHeaderSize && (n > frame.SessionHeaderSize || s.Data[9]&0x40 == 0)) {
					t.Errorf("%s, checksum %v, %d of %d bytes: plausible %v", s.Name, checks, n, len(s.Data), got)
				}
				for range p.Messages() {
				}
				if end, known := endOf(&p); known && end != len(s.Data) {
					t.Errorf("%s, checksum %v, %d of %d bytes: ends at %d", s.Name, checks, n, len(s.Data), end)
				}
			}
		}
	}
}

// TestNotSessionFrames checks that other datagrams are not taken for frames of a session, nor frames with reserved flags of
// an endpoint of another kind, which receivers ignore (DGRDMA-015).
func TestNotSessionFrames(t *testing.T) {
	all := capturetest.Sessions(false)
	data, ack, probe := all[0].Data, all[3].Data, all[5].Data
	patch := capturetest.PatchByte
	for name, b := range map[string][]byte{
		"no source":             patch(data, 2, 0),
		"no destination":        patch(data, 0, 0),
		"longer":                append(bytes.Clone(data), 0),
		"shorter":               data[:len(data)-1],
		"of an unknown type":    patch(data, 18+22, 4),
		"ACK with more":         append(bytes.Clone(ack), 0),
		"ACK of a kind to come": patch(ack, 18, 9),
		"PROBE that is cut":     probe[:len(probe)-1],
		"header alone":          data[:18],
	} {
		p := ofFrame(b, len(b))
		p.Prefix = []byte{0, 0}
		if plausible(&p) {
			t.Errorf("%s: taken for a frame", name)
		}
	}
	_, f := capturetest.Frame()
	for name, b := range map[string][]byte{
		"messages":      patch(f, 9, 5),
		"acknowledges":  {2, 0, 1, 0, 5, 0, 9, 0, 1, 4},
		"sealed":        patch(data, 9, 0x84),
		"short of that": data[:9],
	} {
		if p := ofFrame(b, len(b)); p.Session() {
			t.Errorf("%s: of a session", name)
		}
	}
}

// TestJoinedSessionFrames checks that frames of a session that the capturing host joined are taken apart again: data of one length with a
// shorter one after them, and control frames.
func TestJoinedSessionFrames(t *testing.T) {
	for _, checks := range []bool{false, true} {
		for name, datagrams := range map[string][][]byte{
			"data":       sessionRun(checks, 20, 1422, 700),
			"short data": sessionRun(checks, 20, 30, 30),
			"ACK":        sessionAcks(checks, 9),
		} {
			for wire, c := range capturetest.Joined(t, datagrams...) {
				all, _, err := readAll(capturetest.Pcap(binary.LittleEndian, true, c), Options{})
				if err != nil || len(all) != len(datagrams) {
					t.Errorf("%s, checksum %v, %s: %d of %d frames, %v", name, checks, wire, len(all), len(datagrams), err)
					continue
				}
				for i, p := range all {
					if !bytes.Equal(p.Data, datagrams[i][frame.PrefixSize:]) || p.segment != fmt.Sprintf("%d/%d", i+1, len(datagrams)) {
						t.Errorf("%s, checksum %v, %s: frame %d is %s of %d bytes", name, checks, wire, i, p.segment, len(p.Data))
					}
				}
			}
		}
	}
}

// sessionRun returns n datagrams of a session from 1 to 2 with so much data each, and less in the last.
func sessionRun(checks bool, n, data, last int) (all [][]byte) {
	for i := range n {
		size := data
		if i == n-1 {
			size = last
		}
		b := make([]byte, frame.PrefixSize+frame.SessionHeaderSize+frame.MessageHeaderSize+size)
		h := frame.SessionHeader{Dst: 2, Src: 1, ID: 0xFFFFFFF0 + uint32(i), Tag: 0xCAFE, Ack: 7, Checks: checks}
		h.Put(b[frame.PrefixSize:])
		m := frame.Message{Txn: 7, CompletionAddr: frame.NoCompletion, CompletionValue: frame.NoCompletion, Count: 100, Addr: 0x1000, Len: uint16(size)}
		m.Put(b[frame.PrefixSize+frame.SessionHeaderSize:])
		all = append(all, b)
	}
	if checks {
		return checked(all...)
	}
	return all
}

func sessionAcks(checks bool, n int) (all [][]byte) {
	for i := range n {
		b := make([]byte, 64)
		h := frame.SessionHeader{Dst: 2, Src: 1, ID: uint32(i), Tag: 0xCAFE, Ack: 7, Checks: checks}
		size := frame.PutSessionAckFrame(b[frame.PrefixSize:], &h, false, 0, 12, []frame.Range{{First: 9, Count: 1 + i}})
		all = append(all, b[:frame.PrefixSize+size])
	}
	if checks {
		return checked(all...)
	}
	return all
}
