// Package rpcrdma follows RPC-over-RDMA (package rpcrdma of the module's root) in captures: the header of each Send, the RPC
// message in it, which Reply is of which Call, what RDMA Write and RDMA Read moved for it, credits, and what is wrong.
//
//	d := rpcrdma.New()
//	streams := iwarp.New(iwarp.Options{}, func(e *iwarp.Event) error {
//		if m := d.Event(e); m != nil {
//			fmt.Println(m.Kind, m.Header.XID, m.Call.Name())
//		}
//		return nil
//	})
//
// A [Decoder] is a passive machine: it reads no clock and does no I/O. It is given all events of package inspect/iwarp.
//
// # Which connections
//
// A connection carries RPC-over-RDMA if the private data of its set-up say so (RFC 8797), or from the first Send on that is
// a header with an RPC message of the same XID, or with properties of version 2. A connection of which no Send of the first
// 16 is one carries something else.
//
// # Calls
//
// A Call waits until a Reply or an ERROR with its XID comes from the other side. Forward Calls are those of the client, which
// is the initiator; the server's are reverse Calls. An RDMA Write or Read belongs to the waiting Call that has a segment
// with its STag and offset. The program of a Call at Position 0 is known when it was fetched, and the status of
// a Reply in a Reply chunk when it was written. A COMPOUND of NFS 4 has the names of its operations ([Compound]), as far as their arguments can be passed over. The items
// of a message of NFS 3, MOUNT 3 or NFSACL are [Message.Credential], [Message.Arguments] and [Message.Results].
//
// # What is wrong
//
// [Connection.Found] counts what was seen of each [Kind]. Each is a fact of the capture: where the capture lacks octets, or has
// them late, what depends on them is not counted. What sides see differs from the capture by what is under way, so credits and
// thresholds are compared with the most that the sender can have known.
//
// # Bounds
//
// At most [mostCalls] Calls wait, of all connections, with [mostSegments] segments; further ones are not followed. Of a Send the first
// 8 KiB are read, which hold the longest header, and of what is moved for a whole message as much, or the first KiB where [mostMoved] are kept. A connection keeps nothing but
// counts after its end; what [mostPairs] pairs of hosts left unanswered is remembered for their next connection.
package rpcrdma
