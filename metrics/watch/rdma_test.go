package watch

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/verbs"
)

// TestRDMA: a host of RDMA over TCP is shown with what it has done, until it is closed.
func TestRDMA(t *testing.T) {
	h, err := verbs.Open("tcp:127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.Listen("0")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := h.Register(make([]byte, 4096), verbs.RemoteWrite|verbs.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if r, err := l.Accept(t.Context()); err == nil {
			r.Accept(t.Context(), nil)
		}
	}()
	q, err := h.Dial(t.Context(), l.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Write(t.Context(), memory.Key(), 0, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := q.Read(t.Context(), make([]byte, 10), memory.Key(), 0); err != nil {
		t.Fatal(err)
	}
	c := New()
	c.AddRDMA(nil)
	c.AddRDMA(RDMA(h, "one"))
	for h.Stats().Answered == 0 { // which is counted when it has left
		time.Sleep(time.Millisecond)
	}
	x := scrape(t, c)
	for name, want := range map[string]float64{
		"queue_pairs": 2, "connections_dialed_total": 1, "connections_accepted_total": 1, "sent_bytes_total": 1000, "written_bytes_total": 1000,
		"read_bytes_total": 10, "fetched_bytes_total": 10, "asked_total": 1, "crc_errors_total": 0,
	} {
		if got, there := x.samples["dgrdma_rdma_"+name+`{host="one"}`]; !there || got != want {
			t.Errorf("%s is %v (there: %v), want %v", name, got, there, want)
		}
	}
	for labels, want := range map[string]float64{
		`host="one",of="host",op="write"`: 1, `host="one",of="peer",op="write"`: 1, `host="one",of="host",op="read"`: 1, `host="one",of="peer",op="read"`: 1,
		`host="one",of="peer",op="fetchadd"`: 0,
	} {
		if got, there := x.samples["dgrdma_rdma_operations_total{"+labels+"}"]; !there || got != want {
			t.Errorf("operations of %s are %v (there: %v), want %v", labels, got, there, want)
		}
	}
	if v := c.View(); len(v.RDMA) != 1 || v.RDMA[0].Name != "one" || v.RDMA[0].QueuePairs != 2 || v.RDMA[0].Counters["written"] != 1 {
		t.Errorf("%+v", v.RDMA)
	}
	h.Close()
	if v := c.View(); len(v.RDMA) != 0 {
		t.Errorf("closed, and shown: %+v", v.RDMA)
	}
}
