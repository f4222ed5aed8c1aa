package verbs

// Helped is how often goroutines that waited took something in.
func (q *QueuePair) Helped() uint64 { return q.lending.taken.Load() }
