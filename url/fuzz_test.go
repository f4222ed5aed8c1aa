package url

import (
	"errors"
	"testing"
)

// FuzzParse checks that Parse never panics, that its errors point into the
// input, and that formatting and parsing again is a fixed point, in the
// endpoint's own dialect and in every other that has room for it.
func FuzzParse(f *testing.F) {
	for _, c := range accepted {
		f.Add(c.text)
	}
	for _, text := range []string{
		"",
		"ocpi-udp-rdma:[1::3:4:5:6:7:8]:7000;4096.1.2",
		"ocpi-udp-rdma:[::ffff:1.2.3.4%eth0]:7000",
		"ocpi-udp-rdma:1.2.3.4;6.1",
		"ocpi-ether-rdma:;;1.1.1",
		"ocpi-ether-l2-rdma:00:0c:29:e2:30:24:",
		"udp:[::1]?a=%3D%26%zz",
		"udp:camera.example.:0",
		"ocpi-udp-rdma:camera_2;7000;16.1.10",
		"ether:\xff?\xff=\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			var wrong *Error
			if !errors.As(err, &wrong) {
				t.Fatalf("error of type %T", err)
			}
			if wrong.Offset < 0 || wrong.Offset > len(text) || wrong.Expected == "" || wrong.Input != text {
				t.Fatalf("%#v", wrong)
			}
			if len(wrong.Error()) > 1000 {
				t.Fatalf("message has %d bytes", len(wrong.Error()))
			}
			return
		}
		checkFixedPoint(t, e)
		marshaled, err := e.MarshalText()
		if err != nil || string(marshaled) != e.String() {
			t.Fatalf("MarshalText: %q, %v", marshaled, err)
		}
		for dialect := range Short + 1 {
			checkConversion(t, e, dialect)
		}
	})
}

func checkConversion(t *testing.T, e Endpoint, dialect Dialect) {
	t.Helper()
	text, err := e.Format(dialect)
	if err != nil {
		var misfit *FormatError
		if !errors.As(err, &misfit) {
			t.Fatalf("error of type %T", err)
		}
		return
	}
	got, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	checkFixedPoint(t, got)
	if got.String() != text {
		t.Fatalf("Format(%v) is not canonical: %q, then %q", dialect, text, got)
	}
	ids := e.Max
	if ids == allIDs && dialect.ReadByOpenCPI() {
		ids = OpenCPIIDs
	}
	if dialect != Short && (got.Size != e.Size || got.ID != e.ID || got.Max != ids || got.Options.Len() != 0) {
		t.Fatalf("Format(%v) of %#v\ngot %#v", dialect, e, got)
	}
	if dialect != Datagram2 && (got.MAC != e.MAC || got.Addr != e.Addr || got.Host != e.Host) {
		t.Fatalf("Format(%v) of %#v\ngot %#v", dialect, e, got)
	}
}
