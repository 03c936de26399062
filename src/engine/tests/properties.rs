//! What holds for every message.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::*;

fn tokens(message: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    tokenize(message, &Options::default(), &mut |token| all.push(token.to_vec()));
    all
}

/// Pieces that matter to some rule.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "From a@b Mon Jan  5 10:00:01 2004\n",
        "From ",
        "Subject: ",
        "From: ",
        "To: ",
        "Message-Id: <a@b>",
        "Content-Type: ",
        "multipart/mixed; boundary=b\n\n",
        "multipart/digest; boundary=\"b\"\n\n",
        "message/rfc822\n\n",
        "message/delivery-status\n\n",
        "text/html; charset=x\n\n",
        "Content-Transfer-Encoding: base64\n",
        "Content-Transfer-Encoding: quoted-printable\n",
        "Content-Transfer-Encoding: uue\n",
        "Content-Disposition: x; filename*0*=utf-8''%e9; filename*=a\n",
        "--b\n",
        "--b--\n",
        "--b \r\n",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        " ",
        "\t",
        "=?x?q?a=41?= ",
        "=?x?b?YQ==?=",
        "=?x?b?a?=\n",
        "<a@b>",
        "\"q\\\"",
        "(c(d))",
        "a:b;",
        ",",
        "@",
        ".",
        "<!--",
        "-->",
        "<style>",
        "</style>",
        "<comment>",
        "</comment>",
        "<noframes>",
        "</noframes >",
        "<script",
        "src=\"cid:",
        "width=0",
        "<b>",
        "<br>",
        "&nbsp;",
        "&#65;",
        "&#999;",
        "http://a.b/c?d ",
        "ftp://",
        "begin 644 a.b\n",
        "#0V%T\n",
        "end\n",
        "=3D",
        "=\n",
        "AAAA",
        "=",
        "averyverylongword",
        "name.of@some.host",
        "\u{e9}",
        "word ",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..8),
    ]
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    vec(piece(), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_have_tokens(bytes in vec(any::<u8>(), 0..2000)) {
        tokens(&bytes);
    }

    #[test]
    fn room_used_again_changes_nothing(messages in vec(message(), 1..4)) {
        let mut tokenizer = Tokenizer::new();
        let mut set = TokenSet::new();
        for message in &messages {
            let fresh = tokens(message);
            let mut again = Vec::new();
            tokenizer.run(message, &Options::default(), &mut |token| again.push(token.to_vec()));
            prop_assert_eq!(&again, &fresh);
            set.fill(message, &Options::default());
            let mut distinct: Vec<&[u8]> = Vec::new();
            for token in &fresh {
                if !distinct.contains(&token.as_slice()) {
                    distinct.push(token);
                }
            }
            prop_assert_eq!(set.iter().map(|token| token.word).collect::<Vec<_>>(), distinct);
        }
    }

    #[test]
    fn a_separator_line_gives_no_token(message in message()) {
        let message = [b"Date: now\n", &*message].concat();
        let plain = tokens(&message);
        let with = tokens(&[b"From a@example.org Mon Jan  5 10:00:01 2004\n", &*message].concat());
        prop_assert_eq!(plain, with);
    }

    #[test]
    fn part_limit_only_takes_away(message in message(), limit in 1_usize..5) {
        let all = tokens(&message);
        let options = Options { max_parts: limit, ..Options::default() };
        let mut few = Vec::new();
        tokenize(&message, &options, &mut |token| few.push(token.to_vec()));
        for token in &few {
            prop_assert!(all.contains(token) , "{:?}", String::from_utf8_lossy(token));
        }
    }

    #[test]
    fn learning_can_be_taken_back_and_merged(messages in vec((message(), any::<bool>()), 0..6)) {
        let options = Options::default();
        let mut set = TokenSet::new();
        let (mut together, mut first, mut second) = (Memory::new(), Memory::new(), Memory::new());
        for (n, (message, spam)) in messages.iter().enumerate() {
            set.fill(message, &options);
            together.learn(&set, *spam);
            if n % 2 == 0 { first.learn(&set, *spam) } else { second.learn(&set, *spam) }
        }
        first.merge(&second);
        prop_assert_eq!(rows(&first), rows(&together));
        prop_assert_eq!(first.totals(), together.totals());
        for (message, spam) in &messages {
            set.fill(message, &options);
            let (score, clues) = clues(&set, &together, &options);
            prop_assert!((0.0..=1.0).contains(&score.probability));
            prop_assert!(clues.len() <= options.max_discriminators + 2);
            prop_assert!(evidence(&clues, &options).iter().all(|byte| matches!(byte, b' '..=b'~')));
            together.unlearn(&set, *spam).unwrap();
        }
        prop_assert!(rows(&together).is_empty());
        prop_assert_eq!(together.unlearn(&set, true), Err(Underflow));
    }
}

fn rows(memory: &Memory) -> Vec<(Vec<u8>, Counts)> {
    let mut rows: Vec<_> = memory.iter().map(|(word, counts)| (word.to_vec(), counts)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}
