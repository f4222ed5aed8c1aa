package dgrdma

// finished is a chain of transactions whose Done is to be called. They are in no queue.
type finished struct {
	head, tail *Transaction
}

func (f *finished) add(t *Transaction, err error) {
	t.err = err
	f.append(t)
}

func (f *finished) append(t *Transaction) {
	if f.head == nil {
		f.head = t
	} else {
		f.tail.next = t
	}
	f.tail = t
}

// deliver calls Done for each. No lock may be held.
func (f *finished) deliver() {
	for f.head != nil {
		t := f.head
		f.head = t.next
		t.next, t.posted = nil, false
		switch {
		case t.Done != nil:
			t.Done(t, t.err)
		case t.waiter != nil:
			t.waiter.answer(t.err)
		}
	}
}
