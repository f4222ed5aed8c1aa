// Package metrics shows endpoints and links while they work: as numbers for
// Prometheus, and as one JSON object for programs and people, such as
// "dgrdmacat top".
//
//	r := metrics.New()
//	r.Endpoint(e) // or r.Host(h), with its links
//	go http.ListenAndServe("127.0.0.1:9100", r.Handler())
//
// The handler answers at /metrics, in Prometheus' text format, and at
// /debug/dgrdma, with a [View]. A program with a mux of its own hands it both
// paths. An endpoint that is closed is no longer shown.
//
// # Prometheus
//
// Every metric has the label endpoint, as "7@10.0.0.1:7100": id and address.
//
//	dgrdma_endpoint_*   an endpoint; counters are of all its connections, closed ones included
//	dgrdma_transport_*  its wire
//	dgrdma_peer_*       one connection: label peer, like endpoint
//	dgrdma_host_*       all links of a host: label direction, out or in
//	dgrdma_link_*       one link: labels peer, port, link (a number), direction
//
// Counters of endpoints and peers are [dgrdma.Counters] under the same names. Of
// what is refused, label reason, peers have only the reasons that occurred. What is
// not known, such as the round trip to a peer that has not answered yet, is left
// out.
//
// # Cost
//
// Nothing is counted for this that is not counted anyway. Who asks takes the
// lock of the endpoint for about a microsecond for each peer.
//
// # Limits
//
// There is no authentication: whoever reaches the handler reads addresses, ids and
// names of ports. Listen on loopback, or put something in front.
package metrics
