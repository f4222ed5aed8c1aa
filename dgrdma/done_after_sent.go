package dgrdma

// The bytes of a transaction may leave from where the program has them, see package outgoing. So Done waits until no batch that is being sent has some of
// them, though they are acknowledged: a copy of a frame may be on its way to the system when the first one is acknowledged.

// leaving takes out those of which bytes are in a batch that is still to leave, after so many.
func (f *finished) leaving(batches uint64) (late finished) {
	var gone finished
	for t := f.head; t != nil; {
		next := t.next
		t.next = nil
		if t.leaves > batches {
			late.append(t)
		} else {
			gone.append(t)
		}
		t = next
	}
	*f = gone
	return late
}
