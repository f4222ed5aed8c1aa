package metrics

import "strconv"

var (
	ofEndpoint = kindred[Endpoint]{[]string{"endpoint"}}
	ofPeer     = kindred[Peer]{[]string{"endpoint", "peer"}}
	ofHost     = kindred[Host]{[]string{"endpoint"}}
	ofLink     = kindred[Link]{[]string{"endpoint", "peer", "port", "link"}}
)

var endpointFamilies = []family[Endpoint]{
	ofEndpoint.gauges("dgrdma_endpoint_info", "Always 1; the labels have the id, address and endpoint string.", []string{"id", "address", "url"}, func(w *samples, e *Endpoint) {
		w.add(1, strconv.Itoa(int(e.ID)), e.Address, e.URL)
	}),
	ofEndpoint.gauge("dgrdma_endpoint_up", "1, or 0 if the wire of the endpoint failed.", func(e *Endpoint) float64 { return bit(e.Error == "") }),
	ofEndpoint.gauge("dgrdma_endpoint_age_seconds", "Time since the endpoint was opened.", func(e *Endpoint) float64 { return e.Age }),
	ofEndpoint.gauge("dgrdma_endpoint_memory_bytes", "Addresses that peers may write to: the memory's, and those of links and other services.", func(e *Endpoint) float64 { return float64(e.Memory) }),
	ofEndpoint.gauge("dgrdma_endpoint_peers", "Connections of the endpoint.", func(e *Endpoint) float64 { return float64(len(e.Peers)) }),
	ofEndpoint.counters("dgrdma_endpoint_refused_total", "Received frames that were not applied, by reason.", []string{"reason"}, func(w *samples, e *Endpoint) { reasons(w, e.Refused) }),
	ofEndpoint.histogram("dgrdma_endpoint_completion_seconds", "Time from the first frame of a transaction to its acknowledgement.",
		func(e *Endpoint) *Histogram { return &e.Completion }),
	ofEndpoint.histogram("dgrdma_endpoint_round_trip_seconds", "Time from a frame that was sent once to its acknowledgement.",
		func(e *Endpoint) *Histogram { return &e.RoundTrip }),
}

// countedOfEndpoints are an endpoint's families of counters, and those of its wire.
func countedOfEndpoints(c Counted) []family[Endpoint] {
	return append(ofEndpoint.named("dgrdma_endpoint_", c.Endpoint, func(e *Endpoint) map[string]uint64 { return e.Counters }),
		ofEndpoint.named("dgrdma_transport_", c.Transport, func(e *Endpoint) map[string]uint64 { return e.Transport })...)
}

var peerFamilies = []family[Peer]{
	ofPeer.gauges("dgrdma_peer_info", "Always 1; the label has the profile, the kind of peer that it is taken for.", []string{"profile"}, func(w *samples, p *Peer) { w.add(1, p.Profile) }),
	ofPeer.gauge("dgrdma_peer_ready", "1 if data can flow to the peer, else 0.", func(p *Peer) float64 { return bit(p.State == StateUp || p.State == StateUnheard) }),
	ofPeer.gauge("dgrdma_peer_down", "1 if the peer was given up, else 0.", func(p *Peer) float64 { return bit(p.State == StateDown) }),
	ofPeer.known("dgrdma_peer_rtt_seconds", "Smoothed round-trip time to the peer.", func(p *Peer) float64 { return p.RTT }),
	ofPeer.known("dgrdma_peer_rtt_min_seconds", "Shortest recent round-trip time to the peer.", func(p *Peer) float64 { return p.RTTMin }),
	ofPeer.known("dgrdma_peer_rtt_latest_seconds", "Latest round-trip time to the peer.", func(p *Peer) float64 { return p.RTTLatest }),
	ofPeer.gauges("dgrdma_peer_silent_seconds", "Time since the last frame of the peer.", nil, func(w *samples, p *Peer) {
		if p.Silent != nil {
			w.add(*p.Silent)
		}
	}),
	ofPeer.gauge("dgrdma_peer_window_frames", "Frames that may wait for acknowledgement.", func(p *Peer) float64 { return float64(p.WindowFrames) }),
	ofPeer.known("dgrdma_peer_window_bytes", "Bytes that the congestion controller allows in flight.", func(p *Peer) float64 { return float64(p.WindowBytes) }),
	ofPeer.gauge("dgrdma_peer_in_flight_frames", "Frames that wait for acknowledgement.", func(p *Peer) float64 { return float64(p.InFlight) }),
	ofPeer.gauge("dgrdma_peer_in_flight_bytes", "Bytes of frames in flight that are not taken for lost.", func(p *Peer) float64 { return float64(p.OnWire) }),
	ofPeer.gauges("dgrdma_peer_congestion_info", "Always 1; the labels have the congestion controller, why it was chosen if it was not asked for by name, its state, as Startup or ProbeBW_UP, and that of ECN: testing, on, paused or failed; empty where it is not used.",
		[]string{"controller", "why", "state", "ecn"}, func(w *samples, p *Peer) {
			if c := p.Congestion; c != nil {
				w.add(1, c.Controller, c.Why, c.State, p.ECN)
			}
		}),
	controlled("dgrdma_peer_bandwidth_bytes_per_second", "What the path delivers, as the congestion controller estimates it (BBR.bw).", func(c *Congestion) float64 { return c.Bandwidth }),
	controlled("dgrdma_peer_pacing_bytes_per_second", "Rate at which frames leave (BBR.pacing_rate).", func(c *Congestion) float64 { return c.Pacing }),
	controlled("dgrdma_peer_congestion_rtt_min_seconds", "Round trip of the path without queues, as the congestion controller estimates it (BBR.min_rtt).", func(c *Congestion) float64 { return c.MinRTT }),
	controlled("dgrdma_peer_inflight_longterm_bytes", "Bound on the bytes in flight until more is found to be possible (BBR.inflight_longterm, once inflight_hi).", func(c *Congestion) float64 { return float64(c.LongTerm) }),
	controlled("dgrdma_peer_inflight_shortterm_bytes", "Bound on the bytes in flight until the next probe for bandwidth (BBR.inflight_shortterm, once inflight_lo).", func(c *Congestion) float64 { return float64(c.ShortTerm) }),
	ofPeer.gauge("dgrdma_peer_lost_frames", "Frames in flight that will be sent again.", func(p *Peer) float64 { return float64(p.Lost) }),
	ofPeer.gauge("dgrdma_peer_queued_transactions", "Transactions posted and not done.", func(p *Peer) float64 { return float64(p.Queued) }),
	ofPeer.gauge("dgrdma_peer_open_transactions", "Incoming transactions that are incomplete.", func(p *Peer) float64 { return float64(p.Open) }),
	ofPeer.counters("dgrdma_peer_refused_total", "Received frames that were not applied, by reason; reasons that did not occur are left out.", []string{"reason"},
		func(w *samples, p *Peer) { reasons(w, p.Refused) }),
}

// controlled makes a gauge of what a congestion controller says, which is left out where that is not known.
func controlled(name, help string, value func(*Congestion) float64) family[Peer] {
	return ofPeer.known(name, help, func(p *Peer) float64 {
		if p.Congestion == nil {
			return 0
		}
		return value(p.Congestion)
	})
}

// countedOfPeers are a connection's families of counters.
func countedOfPeers(c Counted) []family[Peer] {
	return ofPeer.named("dgrdma_peer_", c.Endpoint, func(p *Peer) map[string]uint64 { return p.Counters })
}

var hostFamilies = []family[Host]{
	ofHost.gauge("dgrdma_host_memory_bytes", "Memory for links to receive into.", func(h *Host) float64 { return float64(h.Memory) }),
	ofHost.gauge("dgrdma_host_free_bytes", "Memory that no link has.", func(h *Host) float64 { return float64(h.Free) }),
	ofHost.gauge("dgrdma_host_sending_bytes", "Memory of messages to be sent, until they are acknowledged.", func(h *Host) float64 { return float64(h.Sending) }),
	ofHost.gauge("dgrdma_host_links", "Links that have not ended.", func(h *Host) float64 { return float64(len(h.Links)) }),
	ofHost.gauge("dgrdma_host_ended_links", "Links that ended here, and whose peers have not answered that.", func(h *Host) float64 { return float64(h.Ended) }),
	ofHost.counters("dgrdma_host_links_made_total", "Links that were ever made.", nil, func(w *samples, h *Host) { w.add(float64(h.Made)) }),
	ofHost.gauges("dgrdma_host_waiting_links", "Links that were asked for and not accepted yet.", []string{"port"}, func(w *samples, h *Host) {
		for _, p := range h.Ports {
			w.add(float64(p.Waiting), p.Name)
		}
	}),
	ofHost.counters("dgrdma_host_full_total", "Times a bound of the host was reached, by which: backlog, links that waited at a port; links, of a peer; memory, "+
		"for links; letters, answers that waited; ended, links whose end a peer did not answer; sending, memory of messages to be sent.", []string{"bound"},
		func(w *samples, h *Host) {
			for bound, n := range h.Full {
				w.add(float64(n), bound)
			}
		}),
	ofHost.counters("dgrdma_host_messages_total", "Messages of all links, ended ones included.", []string{"direction"}, func(w *samples, h *Host) {
		w.add(float64(h.Sent.Messages), "out")
		w.add(float64(h.Received.Messages), "in")
	}),
	ofHost.counters("dgrdma_host_bytes_total", "Bytes of the messages of all links, ended ones included.", []string{"direction"}, func(w *samples, h *Host) {
		w.add(float64(h.Sent.Bytes), "out")
		w.add(float64(h.Received.Bytes), "in")
	}),
}

var linkFamilies = []family[Link]{
	ofLink.counters("dgrdma_link_messages_total", "Messages committed or received.", ways,
		eachWay(func(o *Out) uint64 { return o.Messages }, func(i *In) uint64 { return i.Messages })),
	ofLink.counters("dgrdma_link_bytes_total", "Bytes of messages committed, or received and released.", ways,
		eachWay(func(o *Out) uint64 { return o.Bytes }, func(i *In) uint64 { return i.Bytes })),
	ofLink.gauges("dgrdma_link_buffers", "Buffers that the receiving side has.", ways,
		eachWay(func(o *Out) int { return o.Buffers }, func(i *In) int { return i.Buffers })),
	ofLink.gauges("dgrdma_link_buffer_bytes", "Length of a buffer.", ways,
		eachWay(func(o *Out) int { return o.BufferBytes }, func(i *In) int { return i.BufferBytes })),
	ofLink.gauges("dgrdma_link_free_buffers", "Buffers that can be filled; of the sending side, its credits.", ways,
		eachWay(func(o *Out) int { return o.Free }, func(i *In) int { return i.Free })),
	ofLink.gauges("dgrdma_link_filled_buffers", "Buffers sent and not given back, or filled and not received.", ways,
		eachWay(func(o *Out) int { return o.Filled }, func(i *In) int { return i.Waiting })),
	ofLink.gauges("dgrdma_link_held_buffers", "Buffers that the application holds.", ways,
		eachWay(func(o *Out) int { return o.Acquired }, func(i *In) int { return i.Held })),
	ofLink.gauges("dgrdma_link_unacknowledged_messages", "Messages sent and not acknowledged yet.", ways,
		eachWay(func(o *Out) int { return o.Unacknowledged }, nil)),
	ofLink.gauges("dgrdma_link_owed_credits", "Buffers released, of which the sending side was not told yet.", ways,
		eachWay(nil, func(i *In) int { return i.Owed })),
	ofLink.gauge("dgrdma_link_failed", "1 if the link failed, else 0.", func(l *Link) float64 { return bit(l.State == LinkFailed) }),
}

var ways = []string{"direction"}

// eachWay writes a sample for each half of a link.
func eachWay[N int | uint64](out func(*Out) N, in func(*In) N) func(*samples, *Link) {
	return func(w *samples, l *Link) {
		if l.Out != nil && out != nil {
			w.add(float64(out(l.Out)), "out")
		}
		if l.In != nil && in != nil {
			w.add(float64(in(l.In)), "in")
		}
	}
}

func reasons(w *samples, refused map[string]uint64) {
	for reason, n := range refused {
		w.add(float64(n), reason)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
