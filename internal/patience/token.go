package patience

// Leave leaves a token in a channel that has room for one, unless one is there: who waits there, now or later, goes on
// once, however often it was left.
func Leave(token chan<- struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}
