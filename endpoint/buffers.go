package endpoint

// bufferGroup is how many frame buffers are made at once, side by side.
const bufferGroup = 16

// bufferQueue holds frame buffers without use, the one longest without first:
// frames are acknowledged in the order in which they were sent, so buffers that
// were made side by side stay neighbours, and the transport can give many of them
// to the kernel as one piece of memory.
type bufferQueue struct {
	ring    [][]byte // a power of two
	head, n int
}

func (q *bufferQueue) push(b []byte) {
	if q.n == len(q.ring) {
		ring := make([][]byte, max(bufferGroup, 2*len(q.ring)))
		for i := range q.n {
			ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = b
	q.n++
}

// pop returns a buffer of that size, of which all in the queue are.
func (q *bufferQueue) pop(size int) []byte {
	if q.n == 0 {
		group := make([]byte, bufferGroup*size)
		for i := range bufferGroup {
			q.push(group[i*size : (i+1)*size : (i+1)*size])
		}
	}
	b := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return b[:size]
}
