package rdmap

// Age makes a stream count as if n messages had gone before on each queue, both ways.
func (s *Stream) Age(n uint32) {
	q, r := &s.requester, &s.responder
	q.sends, q.requests, q.answers, q.expected = n, n, n, n
	r.begun, r.requests, r.answers = n, n, n
	r.queue.head, r.queue.tail = n, n
	s.receives.queue.head, s.receives.queue.tail = n, n
}
