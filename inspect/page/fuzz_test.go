package page_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/dgrdma/dgrdma/capture/capturetest"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/frame/captured"
	"github.com/dgrdma/dgrdma/inspect"
	"github.com/dgrdma/dgrdma/inspect/page"
)

// FuzzPage makes pages of any file at all.
func FuzzPage(f *testing.F) {
	for _, name := range []string{"ether-loss5-pingpong", "udp-loss7", "fpga-lost-ack-stalls"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "frame", "testdata", "captures", name+".pcap"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(introduction(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := captured.NewFileReader(bytes.NewReader(b), captured.Options{})
		if err != nil {
			return
		}
		a := inspect.New()
		p, err := r.Next()
		for ; err == nil; p, err = r.Next() {
			a.Add(p)
		}
		a.Counted(r.Stats())
		a.Damaged(err)
		var out bytes.Buffer
		if err := page.Write(&out, a.Report(), page.Options{Title: "any"}); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "%!"} {
			if bytes.Contains(out.Bytes(), []byte(bad)) {
				t.Errorf("the page has %q", bad)
			}
		}
	})
}

// introduction is a capture of a hello that lists a service.
func introduction(t testing.TB) []byte {
	t.Helper()
	b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize+frame.ServicesSize)
	(&frame.Handshake{Kind: frame.HandshakeHello, Sender: 7}).Put(b, 2, 1)
	name, err := frame.ParseServiceName("memory")
	if err != nil {
		t.Fatal(err)
	}
	var s frame.Services
	s.Add(frame.Service{Name: name, Base: 1 << 16})
	s.Put(b[frame.HeaderSize+frame.MessageHeaderSize:])
	return capturetest.Pcap(binary.LittleEndian, false, capturetest.Wrapped(t, b)["ethernet"])
}
