package patience

// Leave leaves a token in a channel that has room for one, unless one is there. The goroutine that waits there, now or later,
// goes on once, however often Leave was called.
func Leave(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
