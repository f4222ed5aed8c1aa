package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/frame"
)

// services is a list of them as a frame of a handshake has it.
func services(t testing.TB, all ...string) []byte {
	t.Helper()
	var s frame.Services
	for i, name := range all {
		n, err := frame.ParseServiceName(name)
		if err != nil || !s.Add(frame.Service{Name: n, Base: uint32(i) << 16}) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	b := make([]byte, frame.ServicesSize)
	s.Put(b)
	return b
}

// TestReportedServices checks that a report has the services that an end told last, in its newest epoch.
func TestReportedServices(t *testing.T) {
	damaged := services(t, "memory")
	damaged[3] = 1
	for _, tt := range []struct {
		name string
		tell func(s *story)
		want string // in JSON
	}{
		{"never said", func(s *story) { s.hello(1, 2, 10) }, ""},
		{"none", func(s *story) { s.hello(1, 2, 10, services(t)...) }, `,"services":[]`},
		{"two", func(s *story) { s.hello(1, 2, 10, services(t, "memory", "link")...) }, `,"services":[{"name":"memory","base":0},{"name":"link","base":65536}]`},
		{"padded", func(s *story) { s.hello(1, 2, 10, append(services(t, "link"), 1, 2)...) }, `,"services":[{"name":"link","base":0}]`},
		{"damaged", func(s *story) { s.hello(1, 2, 10, damaged...) }, ""},
		{"more later", func(s *story) {
			s.hello(1, 2, 10, services(t)...)
			s.hello(1, 2, 10, services(t, "link")...)
		}, `,"services":[{"name":"link","base":0}]`},
		{"of the next epoch", func(s *story) {
			s.hello(1, 2, 10, services(t, "memory")...)
			s.hello(1, 2, 11, services(t, "link")...)
			s.hello(1, 2, 10, services(t, "memory")...) // held back
		}, `,"services":[{"name":"link","base":0}]`},
		{"not of the last epoch", func(s *story) {
			s.hello(1, 2, 10, services(t, "memory")...)
			s.hello(1, 2, 11)
		}, ""},
	} {
		s := newStory()
		tt.tell(s)
		f := s.a.Report().Flows[0]
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if f.Handshakes == 0 || f.WithMessages != 0 {
			t.Errorf("%s: %d handshakes, %d frames with messages", tt.name, f.Handshakes, f.WithMessages)
		}
		if tt.want == "" && strings.Contains(string(b), "services") || !strings.Contains(string(b), `"to":`) || !strings.Contains(string(b), tt.want+`,"first_ns"`) {
			t.Errorf("%s: report is %s, want ...%s", tt.name, b[:min(len(b), 300)], tt.want)
		}
	}
}
