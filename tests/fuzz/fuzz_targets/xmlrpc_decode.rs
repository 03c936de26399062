//! Any bytes as an answer and as a call: no panic, no overflow of the stack; and what was read can be written and read
//! again as the same.
#![no_main]

use hamsift::xmlrpc::{Limits, Response, call, decode_call, decode_response, response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let limits = Limits::default();
    match decode_response(body, &limits) {
        Ok(Response::Value(value)) => {
            let _ = value.as_score();
            // Once written, characters that XML cannot hold are gone, so the comparison is from then on. In print,
            // because NaN is not equal to itself.
            let first = written_and_read(&value);
            assert_eq!(format!("{first:?}"), format!("{:?}", written_and_read(&first)));
        }
        Ok(Response::Fault { .. }) => {}
        Err(error) => assert!(!error.to_string().chars().any(char::is_control)),
    }
    if let Ok((method, params)) = decode_call(body, &limits) {
        let mut out = Vec::new();
        call(&method, &params, &mut out);
        let (_, again) = decode_call(&out, &limits).expect("a call that was read can be written and read");
        assert_eq!(params.len(), again.len());
    }
});

fn written_and_read(value: &hamsift::xmlrpc::Value) -> hamsift::xmlrpc::Value {
    let mut out = Vec::new();
    response(value, &mut out);
    match decode_response(&out, &Limits::default()) {
        Ok(Response::Value(value)) => value,
        other => panic!("{other:?} from {:?}", String::from_utf8_lossy(&out)),
    }
}
