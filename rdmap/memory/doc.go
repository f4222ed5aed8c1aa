// Package memory is what peers of RDMA streams may touch, and what they may do there.
//
// # What there is
//
// A [Table] has all registered memory of a host. A [Domain] of it is a protection domain: a
// [Stream] belongs to one, and so does a [Region], and a stream reaches the regions of its
// domain only. A region is a run of bytes with [Rights]; a [Window] is a part of one with no
// more rights. Both are a [Grant], which a peer names by its STag, 32 bits that it is told: 24
// of index and 8 of key, all random, so that nobody guesses one (RDMAP-104). The bytes have
// tagged offsets (TO), counted from 0 or from any base.
//
//	table := memory.NewTable()
//	domain := table.NewDomain()
//	region, err := domain.Register(buf, memory.RemoteRead|memory.RemoteWrite, nil)
//	// Tell the peer region.STag(), region.Base() and region.Len().
//	...
//	region.Invalidate() // from here on nothing that a peer sends changes buf
//
// A region or window may be for one stream alone ([Options.Stream]). No other stream of the
// domain can use it, and only such memory can be invalidated by its peer (RDMAP-099, RDMAP-103).
//
// # Withdrawal
//
// What is granted is withdrawn at any moment, synchronously (RDMAP-102): [Region.Invalidate]
// returns when nobody is between [Grant.Enter] and [Grant.Leave], and nobody will be. So bytes
// of a grant are touched between these two only, or with [ddp.Span.Touch], which makes an error of a
// fault besides. What a peer invalidates ([Stream.Invalidate]) is shut at once, without
// waiting, since the goroutine that receives must not wait for others; call Invalidate before
// the bytes are used again, which waits for those inside.
//
// [Region.Reregister] withdraws, and grants other bytes by the same region and a new STag. What a carrier found before
// has the epoch of before, in which [Grant.Enter] lets nothing in any more.
//
// # Atomic operations
//
// [Stream.FetchAdd], [Stream.CompareSwap] and [Stream.Store] are those of package sync/atomic
// on the memory itself. They exclude each other on the same eight bytes, whichever stream,
// carrier, table or region they come by, and the program's own use of sync/atomic there as
// well: the whole process is one atomic domain (RDMAPX-015), and so are all processes that map the
// same file. Words are in the order of the machine's own bytes (RDMAPX-014). Placing of data
// is not atomic: a word that is target of both may become a mixture (RDMAPX-018).
//
// # Files
//
// [Domain.RegisterFile] grants a part of a file. Its regions can be flushed to storage, and
// verified there ([Stream.Flush], [Stream.Verify]), for as long as a disk may take: neither
// belongs on a goroutine that receives.
package memory
