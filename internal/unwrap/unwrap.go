// Package unwrap finds what a value can do that others wrap.
package unwrap

// As returns v as a T, or else the first of those that it wraps that is one. W is what
// an Unwrap method returns.
func As[T, W any](v any) (T, bool) {
	for v != nil {
		if t, ok := v.(T); ok {
			return t, true
		}
		w, ok := v.(interface{ Unwrap() W })
		if !ok {
			break
		}
		v = w.Unwrap()
	}
	var none T
	return none, false
}
