// Package segmentation decides how segments are cut into messages, and so into frames: the counterpart of
// package reassembly. A [Layout] works on lengths alone. It has no state, goroutine, lock, clock or socket.
//
// A segment is cut only where a frame ends. So the number of its messages depends on the room that is
// left in the frame in which it begins. Each message says how many there are of its transaction: they are
// counted before the first one is made.
//
// # Words
//
//	room   how many data bytes a frame still takes after the header of one more message
//	body   the messages of a frame, with their headers and padding
package segmentation
