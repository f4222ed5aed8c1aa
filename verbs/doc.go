// Package verbs is RDMA for Go programs without an RDMA NIC: queue pairs, registered memory, Send and
// Receive, one-sided Write and Read, atomics, immediate data, Flush, Verify and Atomic Write. It speaks
// iWARP over TCP (RFC 5040, 5041, 5044, 6581, 7306), as iWARP NICs and Linux's siw do.
//
//	host, err := verbs.Open("tcp")
//	l, err := host.Listen("7471")
//	request, err := l.Accept(ctx)
//	region, err := host.Register(make([]byte, 1<<20), verbs.RemoteRead|verbs.RemoteWrite)
//	qp, err := request.Accept(ctx, &verbs.Options{Private: region.Key().Bytes()})
//
// and at the other side
//
//	qp, err := host.Dial(ctx, "tcp:10.0.0.2:7471", nil)
//	key, err := verbs.ParseKey(qp.Private())
//	err = qp.Write(ctx, key, 4096, data) // into the peer's memory, of which its program hears nothing
//	err = qp.Read(ctx, data, key, 0)
//	err = qp.Close()
//
// # What there is
//
// A [Host] is this side of connections: a [Listener] takes those of others, [Host.Dial] makes them; [Host.Await] and
// [Host.Connect] do so over a connection that the program has, as of TLS. Each is a
// [QueuePair], into which a program posts work requests ([Work]) and receives ([Receive]); in a [CompletionQueue] it finds
// what is done ([Completion]). Five things can be done with a peer:
//
//   - Send: a message into the oldest receive that the peer's program has posted;
//   - Write: bytes into memory that the peer has registered;
//   - Read: bytes of such memory;
//   - FetchAdd, CompareSwap and Atomic Write: eight bytes of such memory at once;
//   - Flush and Verify: such memory brought to storage, and its hash as storage has it.
//
// All but Send are one-sided: the peer's program makes no call for them, and hears nothing of them. Work and completions
// are asynchronous; the calls with a context, as [QueuePair.Write], are for programs that wait for each.
//
// A server answers who it does not want with [Request.TurnAway], which keeps nobody else waiting. [Host.Stats] counts what all
// queue pairs do: package metrics/watch shows it.
//
// # For those who know libibverbs or libfabric
//
//	Open                       ibv_open_device, rdma_create_id   fi_fabric, fi_domain
//	Host.NewDomain             ibv_alloc_pd                      fi_domain
//	Domain.Register            ibv_reg_mr                        fi_mr_reg
//	Region.Bind, Invalidate    ibv_bind_mw, ibv_dealloc_mw       -
//	Key                        rkey and address                  fi_mr_key and offset
//	Listen, Accept, Dial       rdma_listen, accept, connect      fi_listen, fi_accept, fi_connect
//	Options.Private            rdma_conn_param.private_data      param of fi_connect
//	Options.IRD, ORD,          responder_resources and           -
//	Request.Reads              initiator_depth
//	Post, PostList             ibv_post_send                     fi_writemsg, fi_sendmsg, ...
//	PostReceive, PostReceives  ibv_post_recv                     fi_recv
//	SharedReceives             ibv_create_srq                    fi_srx_context
//	CompletionQueue            ibv_cq and its channel            fid_cq
//	Poll, Wait, WaitEvent      ibv_poll_cq, ibv_get_cq_event     fi_cq_read, fi_cq_sread
//	Data and More              sg_list                           iov of fi_msg
//	Work.Silent                no IBV_SEND_SIGNALED              no FI_COMPLETION
//	Work.Solicited             IBV_SEND_SOLICITED                -
//	Work.Fence                 IBV_SEND_FENCE                    FI_FENCE
//
// Other than there, nothing is pinned; what this side sends, and where its Reads go, needs no registration; completion
// queues do not overflow; there are no states of a queue pair, which is connected from the beginning and ends once; and
// FetchAdd works on numbers in the order of bytes of the peer's machine.
//
// # Memory
//
// What a peer may touch is registered: a [Region] is a run of bytes with [Rights], or a part of a file
// ([Domain.RegisterFile]). Whoever has its [Key] can use it, if it is of the same [Domain]; a [Window] is a part with a
// key of its own. [Region.Invalidate] withdraws it, synchronously: when it returns, nothing that is on its way changes
// the bytes. [Region.Reregister] does that, and grants other bytes by the same Region, without allocating.
//
// The peer is not told that memory is withdrawn. What it does there afterwards, a Write or a Read that was on its way
// among it, ends the connection, with all else that is under way: both sides have a [TerminateError] with
// [FaultTaggedSTag], whose Header has the STag, or with [FaultProtectionSTag] for a Read. So a program that gives a request
// up which its peer may still carry out keeps the memory registered, and uses it for nothing, until the peer says that it is done.
//
// A Send can withdraw memory of the side that receives it ([Work.Invalidating]), if that is for the queue pair alone
// ([RegionOptions.Only]); any other ends the connection. [Completion.STag] says which it was, before the program hears of anything else: it
// may be another than the one that was meant.
//
// Placing of data is not atomic. A Read may see half of what the peer's program, or another peer, is writing: the data
// needs a checksum or a version by which a reader knows, or has to be of the eight bytes that atomics work on.
//
// # Requests
//
// A call such as [QueuePair.Write] carries out one request and returns when it is done. [QueuePair.Post] queues
// one and returns at once; the [CompletionQueue] tells when it is done, in the order of posting. That a
// Write or a Send is done says that its buffer is free, and no more; a Read, an atomic, a Flush, or what the
// peer's program says afterwards tell that it arrived. Neither way allocates memory.
//
// Each message that a peer sends takes a receive, in the order of posting. One for which there is
// none ends the connection, so programs agree on how many may be outstanding, and post the first
// ones with [Options.Posted].
//
// What is sent is gathered from several pieces of memory, Data and each of More; what is read, and what a receive takes,
// is scattered over them.
//
// What waits for the peer's answer (Reads, atomics, Flush, Verify, Atomic Write) is limited by what the
// peer keeps, ORD; what is behind waits. [Work.Fence] holds a request back until all answers are
// there: without it, a Write may overtake the answer to a Read before it.
//
// # Extensions
//
// Nothing on the wire tells whether a peer knows the operations beyond RFC 5040, and one that does not ends the
// connection. So they are used only if [Options.Extensions] of both sides name them: [Atomics] for FetchAdd and
// CompareSwap, [Immediates] for immediate data, [Commit] for Flush, Verify and Atomic Write.
//
// # The end
//
// A fault in what a peer sends ends the connection with a Terminate message that names it: both sides get
// a [TerminateError], whose [Fault] has layer, type and code, and says them in words. There is no other kind of
// recovery: requests that are not done complete with [ErrFlushed], which wraps the reason, and the program dials anew.
// [QueuePair.Close] ends it when everything that is posted is done; [QueuePair.Err] says what it was.
//
// A peer that is killed closes its connections. One whose machine vanishes is missed by TCP: its keep-alive probes find out after
// about two minutes of silence, its retransmissions within a quarter of an hour; and one whose program is stopped, as by SIGSTOP, never is. With
// [Options.GiveUp] either is given up when it has not answered, or not taken what was sent, for so long, and a machine that vanished also when there is
// nothing to do for it. A program that is stopped is not missed while nothing is asked of it. To bound a single call give it
// a context with a deadline.
//
// # Checksums
//
// By default frames have a CRC: data is checked before it is placed. Without ([Options.NoCRC], of both
// sides) TCP's checksum is all there is, and data is received straight into its place.
//
// # Concurrency
//
// All methods of all types may be called by many goroutines. Memory that a peer writes to is
// written by a goroutine of its queue pair: the program may read it after a completion has told it to. Words that are
// for atomics the program reads and changes by [Region.Word] and package sync/atomic.
package verbs
