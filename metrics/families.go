package metrics

import (
	"io"
	"iter"
	"strconv"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

var endpointMetrics = append([]metric[snapshot]{
	{"dgrdma_endpoint_info", isGauge, "Always 1; the labels say what the endpoint is.", func(w *textWriter, l labels, s *snapshot) {
		w.count(l.with("id", strconv.Itoa(int(s.ep.ID()))).with("address", s.ep.LocalAddr().String()).with("url", s.ep.URL()), 1)
	}},
	{"dgrdma_endpoint_up", isGauge, "1, or 0 if its wire failed.", func(w *textWriter, l labels, s *snapshot) { w.count(l, bit(s.stats.Err == nil)) }},
	{"dgrdma_endpoint_age_seconds", isGauge, "Time since it was opened.", func(w *textWriter, l labels, s *snapshot) { w.gauge(l, s.stats.Age.Seconds()) }},
	{"dgrdma_endpoint_memory_bytes", isGauge, "Memory that peers write into.", func(w *textWriter, l labels, s *snapshot) { w.count(l, s.memory()) }},
	{"dgrdma_endpoint_peers", isGauge, "Connections.", func(w *textWriter, l labels, s *snapshot) { w.count(l, uint64(len(s.peers))) }},
	{"dgrdma_endpoint_refused_total", isCounter, "Frames that were not applied.", func(w *textWriter, l labels, s *snapshot) {
		refusals(&s.stats.Counters, func(reason string, n uint64) { w.count(l.with("reason", reason), n) })
	}},
}, append(counted("dgrdma_endpoint_", func(s *snapshot) *dgrdma.Counters { return &s.stats.Counters }), ofTheWire()...)...)

var peerMetrics = append([]metric[dgrdma.ConnStats]{
	{"dgrdma_peer_info", isGauge, "Always 1; the labels say what the peer is taken for.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		w.count(l.with("profile", c.Profile), 1)
	}},
	{"dgrdma_peer_ready", isGauge, "1 if data can flow to the peer.", func(w *textWriter, l labels, c *dgrdma.ConnStats) { w.count(l, bit(c.Ready())) }},
	{"dgrdma_peer_down", isGauge, "1 if the peer was given up.", func(w *textWriter, l labels, c *dgrdma.ConnStats) { w.count(l, bit(c.Down)) }},
	{"dgrdma_peer_rtt_seconds", isGauge, "Smoothed round trip.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		if c.RTT > 0 {
			w.gauge(l, c.RTT.Seconds())
		}
	}},
	{"dgrdma_peer_rtt_min_seconds", isGauge, "Shortest round trip of late.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		if c.MinRTT > 0 {
			w.gauge(l, c.MinRTT.Seconds())
		}
	}},
	{"dgrdma_peer_silent_seconds", isGauge, "Time since the last frame came.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		if c.Silent >= 0 {
			w.gauge(l, c.Silent.Seconds())
		}
	}},
	{"dgrdma_peer_window_frames", isGauge, "Frames that may wait for acknowledgement.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		w.count(l, uint64(c.FrameWindow))
	}},
	{"dgrdma_peer_window_bytes", isGauge, "Bytes that the congestion controller allows in flight.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		if n := windowOf(c); n > 0 {
			w.count(l, uint64(n))
		}
	}},
	{"dgrdma_peer_in_flight_frames", isGauge, "Frames that wait for acknowledgement.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		w.count(l, uint64(c.InFlight))
	}},
	{"dgrdma_peer_lost_frames", isGauge, "Frames in flight that will be sent again.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		w.count(l, uint64(c.Lost))
	}},
	{"dgrdma_peer_queued_transactions", isGauge, "Transactions posted and not done.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		w.count(l, uint64(c.Queued))
	}},
	{"dgrdma_peer_open_transactions", isGauge, "Incoming transactions that are incomplete.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		w.count(l, uint64(c.Open))
	}},
	{"dgrdma_peer_refused_total", isCounter, "Frames that were not applied; reasons that did not occur are left out.", func(w *textWriter, l labels, c *dgrdma.ConnStats) {
		refusals(&c.Counters, func(reason string, n uint64) {
			if n > 0 {
				w.count(l.with("reason", reason), n)
			}
		})
	}},
}, counted("dgrdma_peer_", func(c *dgrdma.ConnStats) *dgrdma.Counters { return &c.Counters })...)

var hostMetrics = []metric[link.HostStats]{
	{"dgrdma_host_memory_bytes", isGauge, "Memory for links to receive into.", func(w *textWriter, l labels, h *link.HostStats) { w.count(l, h.Memory) }},
	{"dgrdma_host_free_bytes", isGauge, "Memory that no link has.", func(w *textWriter, l labels, h *link.HostStats) { w.count(l, h.Free) }},
	{"dgrdma_host_links", isGauge, "Links that are not over.", func(w *textWriter, l labels, h *link.HostStats) { w.count(l, uint64(len(h.Links))) }},
	{"dgrdma_host_links_made_total", isCounter, "Links made.", func(w *textWriter, l labels, h *link.HostStats) { w.count(l, h.Made) }},
	{"dgrdma_host_waiting_links", isGauge, "Links that were asked for and not accepted yet.", func(w *textWriter, l labels, h *link.HostStats) {
		for _, p := range h.Ports {
			w.count(l.with("port", p.Name), uint64(p.Waiting))
		}
	}},
	{"dgrdma_host_messages_total", isCounter, "Messages of all links, those that are over included.", func(w *textWriter, l labels, h *link.HostStats) {
		w.count(l.with("direction", "out"), h.Sent.Messages)
		w.count(l.with("direction", "in"), h.Received.Messages)
	}},
	{"dgrdma_host_bytes_total", isCounter, "Bytes of messages of all links, those that are over included.", func(w *textWriter, l labels, h *link.HostStats) {
		w.count(l.with("direction", "out"), h.Sent.Bytes)
		w.count(l.with("direction", "in"), h.Received.Bytes)
	}},
}

var linkMetrics = []metric[link.LinkStats]{
	eachWay("dgrdma_link_messages_total", isCounter, "Messages committed or received.",
		func(o *link.ProducerStats) uint64 { return o.Messages }, func(i *link.ConsumerStats) uint64 { return i.Messages }),
	eachWay("dgrdma_link_bytes_total", isCounter, "Bytes of messages committed, or received and released.",
		func(o *link.ProducerStats) uint64 { return o.Bytes }, func(i *link.ConsumerStats) uint64 { return i.Bytes }),
	eachWay("dgrdma_link_buffers", isGauge, "Buffers of the receiving side.",
		func(o *link.ProducerStats) uint64 { return uint64(o.Buffers) }, func(i *link.ConsumerStats) uint64 { return uint64(i.Buffers) }),
	eachWay("dgrdma_link_buffer_bytes", isGauge, "Length of a buffer.",
		func(o *link.ProducerStats) uint64 { return uint64(o.Size) }, func(i *link.ConsumerStats) uint64 { return uint64(i.Size) }),
	eachWay("dgrdma_link_free_buffers", isGauge, "Buffers that can be filled; of the sending side, its credits.",
		func(o *link.ProducerStats) uint64 { return uint64(o.Free) }, func(i *link.ConsumerStats) uint64 { return uint64(i.Free) }),
	eachWay("dgrdma_link_filled_buffers", isGauge, "Buffers sent and not given back, or filled and not received.",
		func(o *link.ProducerStats) uint64 { return uint64(o.Filled) }, func(i *link.ConsumerStats) uint64 { return uint64(i.Waiting) }),
	eachWay("dgrdma_link_held_buffers", isGauge, "Buffers that the application has.",
		func(o *link.ProducerStats) uint64 { return uint64(o.Acquired) }, func(i *link.ConsumerStats) uint64 { return uint64(i.Held) }),
	eachWay("dgrdma_link_unacknowledged_messages", isGauge, "Messages that may not have arrived yet.",
		func(o *link.ProducerStats) uint64 { return uint64(o.Unacknowledged) }, nil),
	eachWay("dgrdma_link_owed_credits", isGauge, "Buffers released of which the other side was not told yet.",
		nil, func(i *link.ConsumerStats) uint64 { return uint64(i.Owed) }),
	{"dgrdma_link_failed", isGauge, "1 if the link failed.", func(w *textWriter, l labels, s *link.LinkStats) { w.count(l, bit(linkState(s) == LinkFailed)) }},
}

// counted are the counters of endpoints or peers.
func counted[T any](prefix string, where func(*T) *dgrdma.Counters) (all []metric[T]) {
	for _, c := range counters {
		all = append(all, metric[T]{prefix + c.name + "_total", isCounter, c.help, func(w *textWriter, l labels, of *T) { w.count(l, c.of(where(of))) }})
	}
	return all
}

func ofTheWire() (all []metric[snapshot]) {
	for _, c := range wireCounters {
		all = append(all, metric[snapshot]{"dgrdma_transport_" + c.name + "_total", isCounter, c.help, func(w *textWriter, l labels, s *snapshot) { w.count(l, c.of(&s.stats)) }})
	}
	return all
}

// eachWay is a metric of the halves of a link.
func eachWay(name, kind, help string, out func(*link.ProducerStats) uint64, in func(*link.ConsumerStats) uint64) metric[link.LinkStats] {
	return metric[link.LinkStats]{name, kind, help, func(w *textWriter, l labels, s *link.LinkStats) {
		if s.Out != nil && out != nil {
			w.count(l.with("direction", "out"), out(s.Out))
		}
		if s.In != nil && in != nil {
			w.count(l.with("direction", "in"), in(s.In))
		}
	}}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// WriteText writes what /metrics shows.
func (r *Registry) WriteText(out io.Writer) error {
	all := r.snapshots()
	w := newTextWriter(out)
	writeMetrics(w, endpointMetrics, labelled(all, endpointOf))
	writeMetrics(w, peerMetrics, labelled(all, peersOf))
	writeMetrics(w, hostMetrics, labelled(all, hostOf))
	writeMetrics(w, linkMetrics, labelled(all, linksOf))
	return w.Flush()
}

// labelled finds the things of a kind in all endpoints, once, and makes their
// labels.
func labelled[T any](all []snapshot, find func(s *snapshot, l labels, found func(labels, *T))) iter.Seq2[labels, *T] {
	type one struct {
		l  labels
		of *T
	}
	var list []one
	for i := range all {
		find(&all[i], labels("").with("endpoint", all[i].name), func(l labels, of *T) { list = append(list, one{l, of}) })
	}
	return func(yield func(labels, *T) bool) {
		for _, x := range list {
			if !yield(x.l, x.of) {
				return
			}
		}
	}
}

func endpointOf(s *snapshot, l labels, found func(labels, *snapshot)) { found(l, s) }

func peersOf(s *snapshot, l labels, found func(labels, *dgrdma.ConnStats)) {
	for i := range s.peers {
		found(l.with("peer", s.connOf(&s.peers[i])), &s.peers[i])
	}
}

func hostOf(s *snapshot, l labels, found func(labels, *link.HostStats)) {
	if s.links != nil {
		found(l, s.links)
	}
}

func linksOf(s *snapshot, l labels, found func(labels, *link.LinkStats)) {
	if s.links == nil {
		return
	}
	for i := range s.links.Links {
		x := &s.links.Links[i]
		found(l.with("peer", nameOf(x.Peer)).with("port", x.Port).with("link", strconv.FormatUint(uint64(x.Number), 10)), x)
	}
}
